# Completion of gcx in fish. Written by gcx-manual from src/cli/args.cpp: tools/regenerate.sh

# Prints the words of the command before the cursor, and "--" if that is before the cursor too.
function __gcx_command
    set -l words (commandline -opc)
    set -l command
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --
                set -a command --
                break
            case --device --record --driver --sms --family --svg --rounds --layout --report --contexts --wait --name --join --folder --interval --gpu
                set -e words[1]
            case '-*'
            case '*'
                set -a command $words[1]
        end
        set -e words[1]
    end
    echo "$command"
end

function __gcx_at
    test (__gcx_command) = "$argv[1]"
end

# Prints the completion of the command that gcx runs, after "--".
function __gcx_run
    set -l words (commandline -opc)
    while test "$words[1]" != --
        set -e words[1]
    end
    set -e words[1]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c gcx -f
complete -c gcx -n '__gcx_at ""' -a info -d 'shows the driver, the devices and their capabilities'
complete -c gcx -n '__gcx_at ""' -a plan -d 'shows what a split would give, and creates nothing'
complete -c gcx -n '__gcx_at ""' -a split -d 'creates the partitions, runs kernels, and destroys them'
complete -c gcx -n '__gcx_at ""' -a verify -d 'shows which SMs each partition really uses'
complete -c gcx -n '__gcx_at ""' -a bench -d 'compares gcx with the driver\'s own calls'
complete -c gcx -n '__gcx_at ""' -a exec -d 'runs any CUDA program on a part of the GPU'
complete -c gcx -n '__gcx_at ""' -a ps -d 'shows which processes have reserved which SMs'
complete -c gcx -n '__gcx_at ""' -a top -d 'shows the leases that running processes publish'
complete -c gcx -n '__gcx_at ""' -a sim -d 'the simulated driver'
complete -c gcx -n '__gcx_at ""' -a help -d 'explains gcx, or a command'
complete -c gcx -n '__gcx_at ""' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at ""' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at ""' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at ""' -l version -d 'print the version'
complete -c gcx -n '__gcx_at "info"' -l device -x -d 'only this device, by its ordinal or UUID; all devices if not given'
complete -c gcx -n '__gcx_at "info"' -l limits -d 'also stream priorities and the largest thread block clusters; creates contexts to find out'
complete -c gcx -n '__gcx_at "info"' -l record -rF -d 'write the device (0 if not given) as a profile for the simulated driver'
complete -c gcx -n '__gcx_at "info"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "info"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "info"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "plan"' -l sms -x -d 'the SMs of each partition, e.g. 108,24; 25% is at most that part of all; rest takes what the others leave'
complete -c gcx -n '__gcx_at "plan"' -l device -x -d 'the device\'s ordinal or (the beginning of) its UUID; 0 if not given'
complete -c gcx -n '__gcx_at "plan"' -l family -x -a 'coscheduled fine max-cluster' -d 'coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest clusters); coscheduled if not given'
complete -c gcx -n '__gcx_at "plan"' -l exact -d 'refuse a count or percentage that would have to be rounded'
complete -c gcx -n '__gcx_at "plan"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "plan"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "plan"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "split"' -l sms -x -d 'the SMs of each partition, e.g. 108,24; 25% is at most that part of all; rest takes what the others leave'
complete -c gcx -n '__gcx_at "split"' -l device -x -d 'the device\'s ordinal or (the beginning of) its UUID; 0 if not given'
complete -c gcx -n '__gcx_at "split"' -l family -x -a 'coscheduled fine max-cluster' -d 'coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest clusters); coscheduled if not given'
complete -c gcx -n '__gcx_at "split"' -l exact -d 'refuse a count or percentage that would have to be rounded'
complete -c gcx -n '__gcx_at "split"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "split"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "split"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "verify"' -l sms -x -d 'the SMs of each partition, e.g. 108,24; 25% is at most that part of all; rest takes what the others leave'
complete -c gcx -n '__gcx_at "verify"' -l device -x -d 'the device\'s ordinal or (the beginning of) its UUID; 0 if not given'
complete -c gcx -n '__gcx_at "verify"' -l family -x -a 'coscheduled fine max-cluster' -d 'coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest clusters); coscheduled if not given'
complete -c gcx -n '__gcx_at "verify"' -l exact -d 'refuse a count or percentage that would have to be rounded'
complete -c gcx -n '__gcx_at "verify"' -l svg -rF -d 'write the map as an SVG picture'
complete -c gcx -n '__gcx_at "verify"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "verify"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "verify"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "bench"' -l device -x -d 'the device\'s ordinal or (the beginning of) its UUID; 0 if not given'
complete -c gcx -n '__gcx_at "bench"' -l rounds -x -d 'rounds of split, two contexts, two streams, destroy; the other measurements scale with it; 10000 if not given'
complete -c gcx -n '__gcx_at "bench"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "bench"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "bench"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "bench repartition"' -l device -x -d 'the device\'s ordinal or (the beginning of) its UUID; 0 if not given'
complete -c gcx -n '__gcx_at "bench repartition"' -l rounds -x -d 'rounds of each measurement; 1000 if not given'
complete -c gcx -n '__gcx_at "bench repartition"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "bench repartition"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "bench repartition"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "exec"' -l sms -x -d 'the SMs of each device: a count, a percentage like 12.5%, which is never exceeded, or rest for all free SMs'
complete -c gcx -n '__gcx_at "exec"' -l device -x -d 'ordinals or UUIDs, like 0,2; all devices if not given'
complete -c gcx -n '__gcx_at "exec"' -l layout -x -d 'instead of --sms and --device: the SMs of each device'
complete -c gcx -n '__gcx_at "exec"' -l family -x -a 'coscheduled fine max-cluster' -d 'coscheduled (large clusters work), fine (the smallest steps) or max-cluster (for the largest clusters); coscheduled if not given'
complete -c gcx -n '__gcx_at "exec"' -l report -x -a 'partition device auto' -d 'the SM count that programs see: partition, device, or auto (if not given), which is the partition\'s except for cuBLAS versions that compute wrong results with it'
complete -c gcx -n '__gcx_at "exec"' -l contexts -x -a 'partition device' -d 'the SMs of contexts that programs create with cuCtxCreate: the partition\'s (partition, if not given) or all of the device (device)'
complete -c gcx -n '__gcx_at "exec"' -l wait -x -d 'how long to wait for SMs that other processes have reserved, like 60 or 0.5; 0 if not given'
complete -c gcx -n '__gcx_at "exec"' -l name -x -d 'the reservation\'s name in gcx ps; the name of the command if not given'
complete -c gcx -n '__gcx_at "exec"' -l join -x -d 'share the SMs of your reservation of this name, instead of reserving any'
complete -c gcx -n '__gcx_at "exec"' -l shared -d 'reserve nothing: other processes may use the same SMs'
complete -c gcx -n '__gcx_at "exec"' -l exact -d 'refuse a count or percentage that would have to be rounded'
complete -c gcx -n '__gcx_at "exec"' -l quiet -d 'print only errors, and that a command isn\'t in the partition itself, on standard error'
complete -c gcx -n '__gcx_at "exec"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "exec"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "exec"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "exec --"' -a '(__gcx_run)'
complete -c gcx -n '__gcx_at "ps"' -l folder -x -a '(__fish_complete_directories)' -d 'where processes keep reservations; if not given, GCX_RESERVATION_DIR or /dev/shm/gcx-UID'
complete -c gcx -n '__gcx_at "ps"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "ps"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "ps"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "top"' -l once -d 'print the current state and exit, as without a terminal'
complete -c gcx -n '__gcx_at "top"' -l interval -x -d 'time between updates; 1 if not given'
complete -c gcx -n '__gcx_at "top"' -l metrics -d 'print OpenMetrics text and exit, for a textfile collector'
complete -c gcx -n '__gcx_at "top"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "top"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "top"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "sim list"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "sim list"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "sim list"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "sim run"' -l gpu -rF -a 'a100 h100 h200 b200 gb200 rtx4090 l40s orin' -d 'h100, 2xh100, h100,a100, or a file that gcx info --record wrote'
complete -c gcx -n '__gcx_at "sim run"' -l driver -x -a '12.2 12.4 12.5 12.8 13.0 13.1 13.4 13.5' -d 'the CUDA version of the driver, e.g. 13.0'
complete -c gcx -n '__gcx_at "sim run"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "sim run"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "sim run --"' -a '(__gcx_run)'
complete -c gcx -n '__gcx_at "help"' -l driver -rF -a 'sim:a100 sim:h100 sim:h200 sim:b200 sim:gb200 sim:rtx4090 sim:l40s sim:orin' -d 'the driver: sim:GPU@VERSION for the simulated one, or a path; if not given, GCX_DRIVER or libcuda.so.1'
complete -c gcx -n '__gcx_at "help"' -l json -d 'print JSON, also for errors'
complete -c gcx -n '__gcx_at "help"' -l help -s h -d 'print this text'
complete -c gcx -n '__gcx_at "help"' -a info -d 'shows the driver, the devices and their capabilities'
complete -c gcx -n '__gcx_at "help"' -a plan -d 'shows what a split would give, and creates nothing'
complete -c gcx -n '__gcx_at "help"' -a split -d 'creates the partitions, runs kernels, and destroys them'
complete -c gcx -n '__gcx_at "help"' -a verify -d 'shows which SMs each partition really uses'
complete -c gcx -n '__gcx_at "help"' -a bench -d 'compares gcx with the driver\'s own calls'
complete -c gcx -n '__gcx_at "help"' -a exec -d 'runs any CUDA program on a part of the GPU'
complete -c gcx -n '__gcx_at "help"' -a ps -d 'shows which processes have reserved which SMs'
complete -c gcx -n '__gcx_at "help"' -a top -d 'shows the leases that running processes publish'
complete -c gcx -n '__gcx_at "help"' -a sim -d 'the simulated driver'
complete -c gcx -n '__gcx_at "help"' -a help -d 'explains gcx, or a command'
complete -c gcx -n '__gcx_at "bench"' -a repartition -d 'measures resizes of leases'
complete -c gcx -n '__gcx_at "help bench"' -a repartition -d 'measures resizes of leases'
complete -c gcx -n '__gcx_at "sim"' -a list -d 'shows the GPUs and drivers that can be simulated'
complete -c gcx -n '__gcx_at "sim"' -a run -d 'runs a command on the simulated driver'
complete -c gcx -n '__gcx_at "help sim"' -a list -d 'shows the GPUs and drivers that can be simulated'
complete -c gcx -n '__gcx_at "help sim"' -a run -d 'runs a command on the simulated driver'
