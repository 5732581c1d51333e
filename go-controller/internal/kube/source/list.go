package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// List lists the objects of a kind once, with what is wrong with them. Of an optional kind that the API server
// does not serve there are none. T is the kind's type, such as *cluster.Node.
func List[T cluster.Object](
	ctx context.Context, c *client.Clients, k kinds.Kind,
) (out []T, problems []cluster.Problem, err error) {
	list, err := k.ListWatch(c).ListWithContext(ctx, metav1.ListOptions{})
	if k.Optional && reflector.NotServed(err) {
		return nil, nil, nil
	}
	if err == nil {
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			o, wrong := k.Decode(obj)
			typed, ok := o.(T)
			if !ok {
				return fmt.Errorf("decoding a %T as kind %s", obj, k.Kind)
			}
			out, problems = append(out, typed), append(problems, wrong...)
			return nil
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s from the API server %s: %w", k.Resource.Resource, c.Server, err)
	}
	return out, problems, nil
}
