#!/bin/bash
# Runs the kubelet on a machine without systemd, as the unit of kubeadm's packages does: with the files that kubeadm
# writes, as soon as they exist, and again when it ends. systemctl beside this file controls it.
unit=/run/kubelet-unit
mkdir -p $unit
touch $unit/started
while :; do
  pid=
  {
    flock 9
    if [ -e $unit/started ] && [ -e /var/lib/kubelet/config.yaml ]; then
      KUBELET_KUBEADM_ARGS='' KUBELET_EXTRA_ARGS=''
      for file in /var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet; do
        # shellcheck disable=SC1090 # kubeadm writes one, the test the other
        if [ -e $file ]; then . $file; fi
      done
      # shellcheck disable=SC2086 # words
      kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf \
        --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS 9>&- &
      pid=$!
      echo $pid >$unit/pid
    fi
  } 9>$unit/lock
  [ -z "$pid" ] || wait $pid
  rm -f $unit/pid
  sleep 0.5
done
