package remote

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNames limits how many names are read to complete a word.
const maxNames = 1000

// PodNames lists pods in the session's default namespace, the first ones of many.
func (s *Session) PodNames(ctx context.Context) (names []string, err error) {
	list, err := s.Kube.CoreV1().Pods(s.Default).List(ctx, metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", s.Default, err)
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names, nil
}

// ServiceNames lists services in the session's default namespace, the first ones of many.
func (s *Session) ServiceNames(ctx context.Context) (names []string, err error) {
	list, err := s.Kube.CoreV1().Services(s.Default).List(ctx, metav1.ListOptions{Limit: maxNames})
	if err != nil {
		return nil, fmt.Errorf("listing the services of namespace %s: %w", s.Default, err)
	}
	for _, v := range list.Items {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names, nil
}
