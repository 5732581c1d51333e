package nicmove

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// procs is the file of a cgroup that lists its processes. A process that is written to it moves there.
const procs = "cgroup.procs"

// leaveCgroup moves a process to the root of every cgroup hierarchy (cgroups(7)). There it outlives the end of the
// cgroup that this process is in: systemd kills those of units and sessions as a whole. The error says what still ends
// the process together with this one.
func leaveCgroup(pid int) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	inside, err := cgroupsOf(pid)
	if err != nil {
		return err
	}
	var failed []error
	for _, controllers := range inside {
		root := roots[controllers]
		if root == "" {
			continue // what is not mounted is found below
		}
		if err := os.WriteFile(filepath.Join(root, procs), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			failed = append(failed, fmt.Errorf("moving process %d out of its cgroup: %w", pid, err))
		}
	}
	if inside, err = cgroupsOf(pid); err != nil {
		return err
	}
	for _, controllers := range inside {
		failed = append(failed, fmt.Errorf("process %d is still in a cgroup of hierarchy %q", pid, controllers))
	}
	// A container's end is that of its first process, in its namespace (pid_namespaces(7)).
	const initial = "pid:[4026531836]" // PROC_PID_INIT_INO, linux/proc_ns.h
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initial {
		failed = append(failed, errors.New("the end of this container ends all of its processes"))
	}
	return errors.Join(failed...)
}

// cgroupsOf lists the hierarchies in which a process is not at the root, by their controllers: "" is version 2.
func cgroupsOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a kernel without cgroups
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cgroups of process %d: %w", pid, err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[2] != "/" {
			out = append(out, fields[1])
		}
	}
	return out, nil
}

// cgroupRoots lists where the roots of hierarchies are mounted, by their controllers as /proc/PID/cgroup has them
// (proc_pid_mountinfo(5)).
func cgroupRoots() (map[string]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup hierarchies: %w", err)
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 3 || left[3] != "/" || !slices.Contains([]string{"cgroup", "cgroup2"}, right[0]) {
			continue
		}
		if _, err := os.Stat(filepath.Join(left[4], procs)); err != nil {
			continue // something else is mounted over it
		}
		controllers := slices.DeleteFunc(strings.Split(right[2], ","), func(o string) bool { return !isController(o) })
		if right[0] == "cgroup2" {
			controllers = nil
		}
		out[strings.Join(controllers, ",")] = left[4]
	}
	return out, lines.Err()
}

// isController tells a controller, or a hierarchy's name, from the other mount options of version 1.
func isController(option string) bool {
	other := []string{"rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "favordynmods"}
	return !slices.Contains(other, option) && !strings.HasPrefix(option, "release_agent=")
}
