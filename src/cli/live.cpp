#include "cli/live.hpp"

#include "cli/text.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace gcx::cli {
namespace {

constexpr char kEnter[] = "\033[?1049h\033[?25l\033[?7l"; // other screen, no cursor, lines cut off
constexpr char kLeave[] = "\033[?7h\033[?25h\033[?1049l";
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

bool write_all(std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = write(STDOUT_FILENO, text.data(), text.size());
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (wrote > 0)
            text.remove_prefix(static_cast<std::size_t>(wrote));
        pollfd writable{STDOUT_FILENO, POLLOUT, 0};
        if (wrote < 0)
            poll(&writable, 1, -1);
    }
    return true;
}

// The terminal while it is this program's, and as it was afterwards.
class Terminal {
  public:
    Terminal() : keys_(tcgetattr(STDIN_FILENO, &before_) == 0) { enter(); }
    ~Terminal() { leave(); }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    void enter() {
        termios mine = before_;
        mine.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        mine.c_cc[VMIN] = 1;
        mine.c_cc[VTIME] = 0;
        if (keys_)
            tcsetattr(STDIN_FILENO, TCSANOW, &mine);
        write_all(kEnter);
    }
    void leave() {
        write_all(kLeave);
        if (keys_)
            tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    // Whether standard input is a terminal, whose keys count.
    bool has_keys() const { return keys_; }

  private:
    termios before_{};
    bool keys_;
};

// Signals, to be read one by one.
class Signals {
  public:
    Signals() {
        sigset_t wanted;
        sigemptyset(&wanted);
        for (const int signal : kSignals)
            sigaddset(&wanted, signal);
        pthread_sigmask(SIG_BLOCK, &wanted, &before_);
        file_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    ~Signals() {
        close(file_);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int file() const { return file_; }
    // 0: there is none.
    int next() const {
        signalfd_siginfo info{};
        return read(file_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
    }

  private:
    sigset_t before_{};
    int file_;
};

Screen screen_size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return {};
    return {size.ws_col, size.ws_row};
}

// The lines that fit, each over what was there.
std::string drawn(std::string_view text, const Screen& screen) {
    std::string out = "\033[H";
    for (std::size_t row = 0; row < screen.rows && !text.empty(); row++) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out += row == 0 ? "" : "\r\n";
        (out += text.substr(0, end)) += "\033[0m\033[K";
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out + "\033[J";
}

class View {
  public:
    explicit View(const Live& live) : live_(live) {}

    bool run() {
        while (!over_) {
            const Screen screen = screen_size();
            if (!write_all(drawn(live_.frame(screen), screen)))
                return false;
            wait();
        }
        return !gone_;
    }
    // The signal that ended it; 0: none, or one that is as good as q.
    int ended_by() const { return ended_by_; }

  private:
    using Clock = std::chrono::steady_clock;

    // For the next frame, or what makes one sooner.
    void wait() {
        const auto until = Clock::now() + std::chrono::milliseconds(live_.interval_ms);
        bool redraw = false;
        while (!over_ && !redraw) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
            if (left.count() <= 0)
                return;
            std::array<pollfd, 2> files = {{{signals_.file(), POLLIN, 0},
                                            {terminal_.has_keys() ? STDIN_FILENO : -1, POLLIN, 0}}};
            poll(files.data(), files.size(), static_cast<int>(left.count()));
            while (const int signal = signals_.next())
                redraw = take_signal(signal) || redraw;
            if (files[1].revents != 0)
                read_keys();
        }
    }

    // Whether it asks for a new frame.
    bool take_signal(int signal) {
        if (signal == SIGWINCH)
            return true;
        if (signal == SIGTSTP) {
            terminal_.leave();
            raise(SIGSTOP);
            terminal_.enter();
            return true;
        }
        over_ = true;
        gone_ = signal == SIGHUP;
        ended_by_ = signal == SIGINT ? 0 : signal;
        return false;
    }

    void read_keys() {
        std::array<char, 64> keys{};
        const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
        if (count <= 0 && errno != EINTR && errno != EAGAIN)
            over_ = gone_ = true;
        for (ssize_t i = 0; i < count; i++) {
            const char key = keys[static_cast<std::size_t>(i)];
            over_ = over_ || key == 'q' || key == 'Q' || key == 3;
        }
    }

    const Live& live_;
    Signals signals_;
    Terminal terminal_;
    bool over_ = false;
    bool gone_ = false;
    int ended_by_ = 0;
};

} // namespace

bool can_show_live() {
    const char* const terminal = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
           std::string_view(terminal) != "dumb";
}

bool show_live(const Live& live) {
    bool shown = false;
    int signal = 0;
    {
        View view(live);
        shown = view.run();
        signal = view.ended_by();
    }
    // As it would have ended the program, had it not been caught for the terminal's sake.
    if (signal != 0)
        raise(signal);
    return shown;
}

} // namespace gcx::cli
