package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
)

// object is any object as JSON has it.
type object = map[string]any

// Write lists the objects that a master watches, and writes them with the published settings as a List.
func Write(ctx context.Context, w io.Writer, c *client.Clients, published config.Settings) error {
	items := []any{}
	if published != nil {
		items = append(items, object{"apiVersion": "v1", "kind": "ConfigMap", "data": published,
			"metadata": object{"name": settings.Name, "namespace": settings.Namespace}})
	}
	for _, k := range kinds.WatchedBy(kinds.All(), kinds.Master) {
		list, err := k.ListWatch(c).ListWithContext(ctx, metav1.ListOptions{})
		if k.Optional && reflector.NotServed(err) {
			continue
		}
		if err == nil {
			err = meta.EachListItem(list, func(o runtime.Object) error {
				item, err := reduced(k, o)
				items = append(items, item)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("listing %s from the API server %s: %w", k.Resource.Resource, c.Server, err)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(object{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
		return fmt.Errorf("writing the objects: %w", err)
	}
	return nil
}

// reduced is an object without what the network does not depend on.
func reduced(k kinds.Kind, o runtime.Object) (object, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", o, err)
	}
	out := object{"apiVersion": k.APIVersion(), "kind": string(k.Kind), "metadata": metadata(kinds.Part(raw, "metadata"))}
	rest := kinds.Only(raw, kept()...)
	if k.Reduce != nil {
		rest = k.Reduce(raw)
	}
	maps.Copy(out, rest)
	return out, nil
}

// kept lists what kinds of the network have besides metadata. All of it is about the network.
func kept() []string { return []string{"spec", "status", "addressType", "endpoints", "ports"} }

func metadata(o object) object {
	out := kinds.Only(o, "name", "namespace", "uid", "labels", "annotations", "creationTimestamp", "deletionTimestamp",
		"generation")
	if all := kinds.Part(out, "annotations"); all != nil {
		own := maps.Clone(all)
		maps.DeleteFunc(own, func(key string, _ any) bool { return !network(key) })
		out["annotations"] = own
	}
	return out
}

// network tells whether an annotation is about the network.
func network(key string) bool {
	keys := []string{annotation.PodClassic, annotation.NamespaceChangeNetwork, annotation.NetworkRequests,
		annotation.DefaultNetwork, annotation.NetworkStatus, annotation.PolicyNetworks, annotation.PodMacvlan,
		annotation.MachineArrived, "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"}
	return slices.Contains(keys, key) || strings.HasPrefix(key, "k8s.ovn.org/") || strings.HasPrefix(key, "northbound.io/")
}

// Settings is the published settings in an object of a manifest, or nil if it is another object.
func Settings(raw []byte) config.Settings {
	var c corev1.ConfigMap
	if err := json.Unmarshal(raw, &c); err != nil || c.Kind != "ConfigMap" || c.APIVersion != "v1" ||
		c.Namespace != settings.Namespace || c.Name != settings.Name {
		return nil
	}
	if c.Data == nil {
		return config.Settings{}
	}
	return c.Data
}
