# Completion of gcx in bash. Written by gcx-manual from src/cli/args.cpp: tools/regenerate.sh
_gcx() {
    local line=${COMP_LINE:0:COMP_POINT} value='' command='' option='' i
    local words=() options='' next='' choices='' files='' found=''
    read -ra words <<<"$line"
    if [[ $line != *[[:space:]] ]]; then
        value=${words[-1]}
        unset 'words[-1]'
    fi
    for ((i = 1; i < ${#words[@]}; i++)); do
        case ${words[i]} in
        --)
            _gcx_run "$value"
            return
            ;;
        --device | --record | --driver | --sms | --family | --svg | --rounds | --layout | --report | --contexts | --wait | --name | --join | --folder | --interval | --gpu) ((++i < ${#words[@]})) || option=${words[-1]} ;;
        -*) ;;
        *) command+=${command:+ }${words[i]} ;;
        esac
    done
    if [[ -z $option && $value == --*=* ]]; then
        option=${value%%=*}
        value=${value#*=}
    fi
    case $command in
    '')
        options='--driver --json --help --version'
        next='info plan split verify bench exec ps top sim help'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'info')
        options='--device --limits --record --driver --json --help'
        case $option in
        --record) files=-f ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'plan')
        options='--sms --device --family --exact --driver --json --help'
        case $option in
        --family) choices='coscheduled fine max-cluster' ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'split')
        options='--sms --device --family --exact --driver --json --help'
        case $option in
        --family) choices='coscheduled fine max-cluster' ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'verify')
        options='--sms --device --family --exact --svg --driver --json --help'
        case $option in
        --family) choices='coscheduled fine max-cluster' ;;
        --svg) files=-f ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'bench')
        options='--device --rounds --driver --json --help'
        next='repartition'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'bench repartition')
        options='--device --rounds --driver --json --help'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'exec')
        options='--sms --device --layout --family --report --contexts --wait --name --join --shared --exact --quiet --driver --json --help'
        case $option in
        --family) choices='coscheduled fine max-cluster' ;;
        --report) choices='partition device auto' ;;
        --contexts) choices='partition device' ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'ps')
        options='--folder --driver --json --help'
        case $option in
        --folder) files=-d ;;
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'top')
        options='--once --interval --metrics --driver --json --help'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'sim list')
        options='--driver --json --help'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'sim run')
        options='--gpu --driver --json --help'
        case $option in
        --gpu) choices='a100 h100 h200 b200 gb200 rtx4090 l40s orin' files=-f ;;
        --driver) choices='12.2 12.4 12.5 12.8 13.0 13.1 13.4 13.5' ;;
        esac
        ;;
    'help')
        options='--driver --json --help'
        next='info plan split verify bench exec ps top sim help'
        case $option in
        --driver) choices='sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' files=-f ;;
        esac
        ;;
    'help bench')
        next='repartition'
        ;;
    'sim')
        next='list run'
        ;;
    'help sim')
        next='list run'
        ;;
    esac
    if [[ -n $option ]]; then
        next=$choices
    elif [[ $value == -* || -z $next ]]; then
        next=
        for option in $options; do
            [[ " ${words[*]} " == *" $option"[\ =]* ]] || next+=" $option"
        done
        option=
    fi
    mapfile -t COMPREPLY < <(
        compgen -W "$next" -- "$value"
        [[ -n $option && -n $files ]] && compgen "$files" -- "$value"
    )
    [[ -n $option && -n $files ]] && compopt -o filenames
    # Readline replaces only what follows the last of COMP_WORDBREAKS, such as the colon of sim:h100.
    found=${COMP_WORDS[COMP_CWORD]}
    [[ $found == [=:@] ]] && found=
    if [[ $value == *"$found" ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${value%"$found"}"}")
    fi
}

# Completes the command that gcx runs, after "--".
_gcx_run() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] && break
    done
    if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
    elif ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$1")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$1")
        compopt -o filenames
    fi
}

complete -F _gcx gcx
