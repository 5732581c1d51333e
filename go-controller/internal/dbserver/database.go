package dbserver

import (
	"fmt"
	"path/filepath"
)

// Database is one of OVN's databases.
type Database struct {
	Short  string // nb or sb, as in the names of OVN's programs and files
	Name   string // of the schema
	Global string // the table with the server's own settings
	Port   int    // for clients
	Role   string // what ovnkube's clients may do (ovn-sb(5), column role of Connection); "" for everything
}

// Databases lists both.
func Databases() []Database {
	return []Database{
		{Short: "nb", Name: "OVN_Northbound", Global: "NB_Global", Port: 6641},
		{Short: "sb", Name: "OVN_Southbound", Global: "SB_Global", Port: 6642, Role: "ovn-controller"},
	}
}

// ByName finds a database by its short name.
func ByName(short string) (Database, error) {
	for _, d := range Databases() {
		if d.Short == short {
			return d, nil
		}
	}
	return Database{}, fmt.Errorf("database %q: want nb or sb", short)
}

// Layout says where the files are.
type Layout struct {
	Files        string // databases, on the node's disk
	Run          string // sockets
	Schemas      string // of OVN
	Certificates string // as `ovnkube certificates` names them
}

// File is the database's file.
func (l Layout) File(d Database) string { return filepath.Join(l.Files, "ovn"+d.Short+"_db.db") }

// Socket is where the server of this machine serves clients.
func (l Layout) Socket(d Database) string { return filepath.Join(l.Run, "ovn"+d.Short+"_db.sock") }

// Control is the server's control socket (ovs-appctl(8)).
func (l Layout) Control(d Database) string { return filepath.Join(l.Run, "ovn"+d.Short+"_db.ctl") }

// Schema is the schema's file.
func (l Layout) Schema(d Database) string {
	return filepath.Join(l.Schemas, "ovn-"+d.Short+".ovsschema")
}

// RaftSocket leads to the Raft server on a node. ovsdb-server makes the one of its own node, and link the others.
func (l Layout) RaftSocket(d Database, node string) string {
	return filepath.Join(l.Run, raftName(d, node))
}

// raftName is the path of a Raft server's socket below Layout.Run.
func raftName(d Database, node string) string { return filepath.Join("raft", d.Short, node) }

// PeerSocket leads to the server on another node, as its own Socket does for a program there.
func (l Layout) PeerSocket(d Database, node string) string {
	return filepath.Join(l.Run, "peers", d.Short, node)
}

func (l Layout) key(d Database) string {
	return filepath.Join(l.Certificates, "ovn-"+d.Short+"-current.pem")
}

func (l Layout) ca(d Database) string {
	return filepath.Join(l.Certificates, "ovn-"+d.Short+"-ca.crt")
}
