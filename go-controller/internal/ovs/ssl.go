package ovs

import (
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

// Keys are those of the SSL row, which ovn-controller uses for ssl: addresses (ovn-controller(8)); the zero value when
// there is no such row.
func (d *DB) Keys() (config.Keys, error) {
	root, err := d.root()
	if err != nil {
		return config.Keys{}, err
	}
	_, keys := d.ssl(root)
	return keys, nil
}

// OwnKeys tells whether the SSL row was made by a node agent, and not by an operator's `ovs-vsctl set-ssl`.
func (d *DB) OwnKeys() bool {
	root, err := d.root()
	if err != nil {
		return false
	}
	row, _ := d.ssl(root)
	return row != nil && row.ExternalIDs[names.OVSOwnKeys] != ""
}

// ssl is the SSL row that the Open_vSwitch row refers to, nil when there is none.
func (d *DB) ssl(root *vswitchdb.OpenvSwitch) (*vswitchdb.SSL, config.Keys) {
	if root.SSL == nil {
		return nil, config.Keys{}
	}
	row, ok := d.rows(vswitchdb.SSLTable)[*root.SSL].(*vswitchdb.SSL)
	if !ok {
		return nil, config.Keys{}
	}
	return row, config.Keys{PrivKey: row.PrivateKey, Cert: row.Certificate, CACert: row.CaCert}
}

// diffKeys makes or changes the SSL row, as `ovs-vsctl set-ssl`. A row with other columns of its own keeps them.
func (d *DB) diffKeys(out *difference, root *vswitchdb.OpenvSwitch, want config.Keys) {
	have, keys := d.ssl(root)
	if want == (config.Keys{}) || keys == want {
		return
	}
	const text = "ssl private_key=%s certificate=%s ca_cert=%s"
	row := &vswitchdb.SSL{PrivateKey: want.PrivKey, Certificate: want.Cert, CaCert: want.CACert}
	if have != nil {
		row.UUID = have.UUID
		out.changed("ssl", "~ "+text+" (was: "+text+")", want.PrivKey, want.Cert, want.CACert, keys.PrivKey, keys.Cert,
			keys.CACert)
		out.add(d.api().Where(row).Update(row, &row.PrivateKey, &row.Certificate, &row.CaCert))
		return
	}
	row.UUID, row.ExternalIDs = "ssl_keys", map[string]string{names.OVSOwnKeys: "true"}
	out.changed("ssl", "+ "+text, want.PrivKey, want.Cert, want.CACert)
	out.add(d.api().Create(row))
	to := &vswitchdb.OpenvSwitch{UUID: root.UUID, SSL: &row.UUID}
	out.add(d.api().Where(to).Update(to, &to.SSL))
}
