package limits

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// group is the files with the limits of memory of a process's control group and of those around it (cgroups(7)). Some
// are not there.
type group []string

// ownGroup finds them below proc, which is /proc/self. Without control groups there are none.
func ownGroup(proc string) (files group) {
	mounts, mountsErr := os.ReadFile(filepath.Join(proc, "mountinfo"))
	groups, groupsErr := os.ReadFile(filepath.Join(proc, "cgroup"))
	if mountsErr != nil || groupsErr != nil {
		return nil
	}
	for line := range strings.Lines(string(mounts)) {
		left, right, _ := strings.Cut(line, " - ")
		of, at := strings.Fields(left), strings.Fields(right)
		if len(of) < 5 || len(at) < 3 {
			continue
		}
		root, top := of[3], of[4]
		switch {
		case at[0] == "cgroup2":
			files = append(files, upwards(top, below(string(groups), "", root), "memory.max")...)
		case at[0] == "cgroup" && slices.Contains(strings.Split(at[2], ","), "memory"):
			files = append(files, upwards(top, below(string(groups), "memory", root), "memory.limit_in_bytes")...)
		}
	}
	return files
}

// below is the process's group in a hierarchy, as a path from the one that is mounted: in a container that is its own.
func below(groups, controller, root string) string {
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || !slices.Contains(strings.Split(part[1], ","), controller) {
			continue
		}
		if path, ok := strings.CutPrefix(part[2], strings.TrimSuffix(root, "/")); ok {
			return filepath.Clean("/" + path)
		}
	}
	return "/"
}

// upwards lists a file of a group and of all around it, up to the top.
func upwards(top, path, name string) (files []string) {
	for {
		files = append(files, filepath.Join(top, path, name))
		if path == "/" {
			return files
		}
		path = filepath.Dir(path)
	}
}

// limit is the least of the limits, math.MaxInt64 if there is none. ok is false if there are files, but none can be
// read.
func (g group) limit() (least int64, ok bool) {
	least, ok = math.MaxInt64, len(g) == 0
	for _, f := range g {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		ok = true
		// "max" is none; version 1 has a number beyond all memory instead.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < unlimited {
			least = min(least, n)
		}
	}
	return least, ok
}

// unlimited is more memory than any machine has.
const unlimited = 1 << 60
