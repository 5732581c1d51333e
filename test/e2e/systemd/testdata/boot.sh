#!/bin/bash
# Boots systemd as PID 1 of a machine: boot.sh ROOT-FILESYSTEM DIRECTORY HOSTNAME STATE. It runs in new network,
# mount, PID, UTS, IPC and cgroup namespaces. What the machine writes is in memory, and gone with it.
set -euo pipefail
lower=$1 dir=$2 name=$3 state=$4
mount --make-rprivate /
mkdir -p "$dir/memory" "$dir/root"
mount -t tmpfs tmpfs "$dir/memory"
mkdir "$dir/memory/upper" "$dir/memory/work"
root=$dir/root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/memory/upper,workdir=$dir/memory/work" "$root"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty net/tun; do
  [ -e "/dev/$device" ] || continue
  mkdir -p "$(dirname "$root/dev/$device")"
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts" "$root/dev/mqueue"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t mqueue mqueue "$root/dev/mqueue"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mkdir -p "$root$state/control/api"
cp -a "$state/control/pki" "$root$state/control/"
cp "$state"/control/api/*.kubeconfig "$root$state/control/api/"

hostname "$name"
echo "$name" >"$root/etc/hostname"
echo "$name" >"$root/etc/openvswitch/system-id.conf"
: >"$root/etc/machine-id"
# What concerns the kernel or the devices of the whole host is not a machine's to set, and OVN's databases run elsewhere.
units=$root/etc/systemd/system
for unit in systemd-{sysctl,modules-load,remount-fs,udevd,udev-trigger,networkd,resolved,timesyncd}.service \
  {networking,console-getty,ovn-central,ovn-northd,ovn-ovsdb-server-nb,ovn-ovsdb-server-sb,containerd}.service \
  {sys-kernel-debug,sys-kernel-tracing,sys-kernel-config,dev-hugepages,dev-mqueue,sys-fs-fuse-connections}.mount; do
  ln -sf /dev/null "$units/$unit"
done
install -m 755 "$(dirname "$0")/curl" "$root/usr/local/bin/curl"
cp "$dir"/*.deb "$root/root/"
# systemd makes mount namespaces for services, which a mere chroot would confuse.
mkdir "$root/outside"
cd "$root"
pivot_root . outside
# On a real machine systemd itself has services see mounts that come later, such as pods' network namespaces.
exec chroot . bash -c 'umount --lazy /outside && rmdir /outside && mount --make-rshared / &&
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /usr/lib/systemd/systemd --system' </dev/null
