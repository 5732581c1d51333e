package nbdb

import _ "embed"

//go:embed ovn-nb.ovsschema
var schemaFile string

// SchemaFile is the schema file itself, byte for byte, in the form that
// ovsdb-tool(1) reads (RFC 7047, section 3.2).
func SchemaFile() string { return schemaFile }
