package rootfs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// preferences let apt take OVN and Open vSwitch, with dependencies that no other suite has, from a suite that it does
// not use otherwise (apt_preferences(5)).
const preferences = `Package: src:ovn src:openvswitch
Pin: release a=%s
Pin-Priority: 500
`

// inRoot upgrades packages in a root filesystem. policy-rc.d keeps their services from starting (invoke-rc.d(8)). An
// outdated mirror is good enough, as for debootstrap.
const inRoot = `set -e
root=$1
shift
if [ -e /etc/resolv.conf ]; then cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"; fi
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get --error-on=any --option Acquire::Check-Valid-Until=false update
chroot "$root" apt-get install --yes --no-install-recommends --only-upgrade "$@"
umount "$root/proc"
rm -f "$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf" "$root"/var/cache/apt/*.bin
rm -r "$root"/var/lib/apt/lists/*
`

// upgrade installs the OVN of the suite ahead if the mirror has that suite with a newer OVN.
func upgrade(ctx context.Context, step *progress.Step, dir string, r release) error {
	there, err := r.hasAhead(ctx)
	if err != nil || !there {
		return err
	}
	files := map[string]string{
		"etc/apt/sources.list.d/ahead.list": fmt.Sprintf("deb %s %s %s\n", r.mirror, r.ahead, strings.ReplaceAll(r.components,
			",", " ")),
		"etc/apt/preferences.d/ahead": fmt.Sprintf(preferences, r.ahead),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("naming %s to apt: %w", r.ahead, err)
		}
	}
	if err := isolated(ctx, step, "sh", append([]string{"-c", inRoot, "sh", dir}, r.packages...)...); err != nil {
		return fmt.Errorf("upgrading to the OVN of %s: %w", r.ahead, err)
	}
	return nil
}

// hasAhead reports whether the mirror has the suite ahead. A mirror that does not use HTTP cannot be reached from a
// root filesystem, and counts as one without the suite.
func (r release) hasAhead(ctx context.Context) (bool, error) {
	if r.ahead == "" || !strings.HasPrefix(r.mirror, "http") {
		return false, nil
	}
	url := strings.TrimSuffix(r.mirror, "/") + "/dists/" + r.ahead + "/InRelease"
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return false, fmt.Errorf("asking the mirror for %s: %w", r.ahead, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("asking the mirror for %s: %w", r.ahead, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("asking the mirror for %s: %s answers %s", r.ahead, url, answer.Status)
}
