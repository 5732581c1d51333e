package ovs

import (
	"maps"
	"reflect"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// models are the tables of the Open_vSwitch database that are used.
func models() map[string]model.Model {
	return map[string]model.Model{
		vswitchdb.OpenvSwitchTable: &vswitchdb.OpenvSwitch{},
		vswitchdb.SSLTable:         &vswitchdb.SSL{},
		vswitchdb.BridgeTable:      &vswitchdb.Bridge{},
		vswitchdb.PortTable:        &vswitchdb.Port{},
		vswitchdb.InterfaceTable:   &vswitchdb.Interface{},
	}
}

// Lacking lists, as TABLE.COLUMN, what Open needs and a schema lacks.
func Lacking(s Schema) []string {
	var out []string
	all := models()
	for _, table := range slices.Sorted(maps.Keys(all)) {
		t := reflect.TypeOf(all[table]).Elem()
		for i := range t.NumField() {
			column := t.Field(i).Tag.Get("ovsdb")
			if column != "_uuid" && !slices.Contains(s.Columns[table], column) {
				out = append(out, table+"."+column)
			}
		}
	}
	return out
}
