package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Init is PID 1 of a member: it builds the root, starts services on request, and reaps processes. It returns only if it
// fails to start; otherwise it ends by being killed.
func Init(specFile string) error {
	if os.Getpid() != 1 {
		return errors.New("sandbox init is run by the sandbox itself, as PID 1 of a member")
	}
	goes := os.NewFile(3, "go")
	if _, err := io.ReadFull(goes, make([]byte, 1)); err != nil {
		return fmt.Errorf("waiting to be recorded: %w", err)
	}
	goes.Close()
	var spec Spec
	if err := readJSON(specFile, &spec); err != nil {
		return err
	}
	if err := buildRoot(spec); err != nil {
		return fmt.Errorf("building the root of %s: %w", spec.Name, err)
	}
	if err := setSysctls(spec.Sysctls); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("setting the loopback link up: %w", err)
	}
	// Only SIGKILL ends a member. Signals are received and not ignored, because services would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	s := &supervisor{spec: spec, byName: map[string]*service{}, byPID: map[int]*service{}}
	go s.reap()
	l, err := net.Listen("unix", spec.socket())
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return (&http.Server{Handler: s.routes()}).Serve(l) //nolint:gosec // a local socket in a directory of root's
}

func setSysctls(want map[string]string) error {
	for name, value := range want {
		path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting sysctl %s to %q: %w", name, value, err)
		}
	}
	return nil
}

// Service is a program that Init started. Init does not restart it: tests must notice when a program of the product
// ends.
type Service struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"` // Argv[0] is found in the member's PATH
	Env  []string `json:"env"`  // NAME=value, beside PATH and HOME
}

// ServiceStatus is the state of a service.
type ServiceStatus struct {
	Service
	PID  int    `json:"pid"`  // in the member's PID namespace; 0 if it is not running
	Exit string `json:"exit"` // how it ended: "exit status 1", "signal: killed"; empty while it runs
}

// Crashed reports whether a fault of its own has ended the service: a failed assertion, or memory that it may not use.
func (s ServiceStatus) Crashed() bool {
	faults := []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL}
	return s.PID == 0 && slices.ContainsFunc(faults, func(f syscall.Signal) bool {
		return strings.HasPrefix(s.Exit, exitText(unix.WaitStatus(f)))
	})
}

type service struct {
	ServiceStatus
	ended chan struct{}
}

type supervisor struct {
	spec Spec

	mu     sync.Mutex
	byName map[string]*service
	byPID  map[int]*service
}

func (s *supervisor) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /services", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.status()) // the client sees a short answer
	})
	mux.HandleFunc("POST /services", func(w http.ResponseWriter, r *http.Request) {
		var want Service
		err := json.NewDecoder(r.Body).Decode(&want)
		if err == nil {
			err = s.start(want)
		}
		answer(w, err)
	})
	mux.HandleFunc("DELETE /services/{name}", func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(r.URL.Query().Get("signal"))
		if err != nil || number <= 0 {
			answer(w, fmt.Errorf("signal %q: want a positive number", r.URL.Query().Get("signal")))
			return
		}
		answer(w, s.stop(r.Context(), r.PathValue("name"), syscall.Signal(number)))
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

// Environment is the environment of every program in a member.
func Environment() []string {
	return []string{
		"PATH=" + BinDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/share/openvswitch/scripts",
		"HOME=/root", "LANG=C.UTF-8",
	}
}

// start starts a service. It holds the lock until the PID is known, so that reap finds a service that exits at once.
func (s *supervisor) start(want Service) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want.Name == "" || len(want.Argv) == 0 {
		return fmt.Errorf("service %q with arguments %q: want a name and a program", want.Name, want.Argv)
	}
	if have := s.byName[want.Name]; have != nil && have.PID != 0 {
		return fmt.Errorf("service %s runs already, as process %d", want.Name, have.PID)
	}
	program, err := lookPath(want.Argv[0])
	if err != nil {
		return fmt.Errorf("starting service %s: %w", want.Name, err)
	}
	out, err := os.OpenFile(filepath.Join(s.spec.LogDir(), want.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of service %s: %w", want.Name, err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("starting service %s: %w", want.Name, err)
	}
	defer null.Close()
	p, err := os.StartProcess(program, want.Argv, &os.ProcAttr{
		Dir: "/", Env: append(Environment(), want.Env...), Files: []*os.File{null, out, out},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("starting service %s: %w", want.Name, err)
	}
	v := &service{ServiceStatus: ServiceStatus{Service: want, PID: p.Pid}, ended: make(chan struct{})}
	s.byName[want.Name], s.byPID[p.Pid] = v, v
	return p.Release()
}

func lookPath(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, dir := range strings.Split(strings.TrimPrefix(Environment()[0], "PATH="), ":") {
		path := filepath.Join(dir, program)
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in the member", program)
}

// stop sends a signal to a service and the processes of its group, and waits until the service has ended. It succeeds
// if the service is not running.
func (s *supervisor) stop(ctx context.Context, name string, signal syscall.Signal) error {
	s.mu.Lock()
	v := s.byName[name]
	running := v != nil && v.PID != 0
	var err error
	if running {
		// ovs-vswitchd --monitor does not end what it monitors.
		err = unix.Kill(-v.PID, signal)
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("sending signal %v to service %s: %w", signal, name, err)
	}
	if !running {
		return nil
	}
	select {
	case <-v.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for service %s to end: %w", name, ctx.Err())
	}
}

func (s *supervisor) status() []ServiceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []ServiceStatus{}
	for _, v := range s.byName {
		all = append(all, v.ServiceStatus)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// reap waits for every child: services, and the orphans that PID 1 inherits.
func (s *supervisor) reap() {
	child := make(chan os.Signal, 1)
	signal.Notify(child, unix.SIGCHLD)
	for range child {
		for s.reapOne() {
			continue
		}
	}
}

func (s *supervisor) reapOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
	if errors.Is(err, unix.EINTR) {
		return true
	}
	if err != nil || pid == 0 {
		return false
	}
	if v := s.byPID[pid]; v != nil {
		v.PID, v.Exit = 0, exitText(status)
		delete(s.byPID, pid)
		close(v.ended)
	}
	return true
}

func exitText(status unix.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("signal: %v", status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
