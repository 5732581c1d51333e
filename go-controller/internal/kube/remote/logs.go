package remote

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Log is the log of a container, now or before it was started again.
type Log struct {
	App, Node, Pod, Container string
	Previous                  bool
}

// Logs lists the logs of the chart's pods. Others in its namespace are not ours to read.
func (s *Session) Logs(ctx context.Context) (out []Log, err error) {
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the pods in namespace %s: %w", s.Namespace, err)
	}
	for _, pod := range pods.Items {
		app := pod.Labels["app"]
		if !slices.ContainsFunc(parts(), func(part [2]string) bool { return part[0] == app }) {
			continue
		}
		l := Log{App: app, Node: pod.Spec.NodeName, Pod: pod.Name}
		for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, c := range all {
				l.Container, l.Previous = c.Name, false
				out = append(out, l)
				if c.RestartCount > 0 {
					l.Previous = true
					out = append(out, l)
				}
			}
		}
	}
	return out, nil
}

// maxLines is how many lines of a log are read.
const maxLines = 50_000

// ReadLog is the end of a log, at most so many bytes.
func (s *Session) ReadLog(ctx context.Context, l Log, most int64) ([]byte, error) {
	lines := int64(maxLines)
	o := &corev1.PodLogOptions{Container: l.Container, Previous: l.Previous, Timestamps: true, TailLines: &lines}
	stream, err := s.Kube.CoreV1().Pods(s.Namespace).GetLogs(l.Pod, o).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the log of container %s of pod %s: %w", l.Container, l.Pod, err)
	}
	defer stream.Close()
	var tail []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := stream.Read(piece)
		tail = append(tail, piece[:n]...)
		if over := int64(len(tail)) - 2*most; over > 0 {
			tail = append([]byte(nil), tail[int64(len(tail))-most:]...)
		}
		if err == io.EOF {
			return tail[max(0, int64(len(tail))-most):], nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log of container %s of pod %s: %w", l.Container, l.Pod, err)
		}
	}
}
