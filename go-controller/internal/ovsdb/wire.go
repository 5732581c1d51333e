package ovsdb

// These are operations and their values as JSON (RFC 7047 sections 5.1 and 5.2), in plain Go types. libovsdb's give the
// same bytes, but are encoded level by level, and match every UUID with a regular expression.

// wireOperation is an operation. Only an insert has no conditions.
type wireOperation struct {
	Op        string         `json:"op"`
	Table     string         `json:"table"`
	Row       map[string]any `json:"row,omitempty"`
	Columns   []string       `json:"columns,omitempty"`
	Mutations []wireClause   `json:"mutations,omitempty"`
	Where     []wireClause   `json:"where,omitzero"`
	UUID      string         `json:"uuid,omitempty"`
}

// wireClause is a condition or mutation: a column, a function and a value.
type wireClause = [3]any

// uuidColumn is the column that every row has.
const uuidColumn = "_uuid"

// wireUUID is a reference to a row: ["uuid", uuid].
type wireUUID = [2]string

func uuidValue(u string) wireUUID { return wireUUID{"uuid", u} }

// setValue is a set of strings or, with uuids, of references to rows. A set with one member is written as that member.
func setValue(members []string, uuids bool) any {
	switch {
	case len(members) == 1 && uuids:
		return uuidValue(members[0])
	case len(members) == 1:
		return members[0]
	case !uuids:
		return [2]any{"set", append([]string{}, members...)} // an empty one is [], not null
	}
	refs := make([]wireUUID, len(members))
	for i, m := range members {
		refs[i] = uuidValue(m)
	}
	return [2]any{"set", refs}
}

// mapValue is a map with keys that are strings.
func mapValue[V any](m map[string]V) any {
	pairs := make([][2]any, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, [2]any{k, v})
	}
	return [2]any{"map", pairs}
}
