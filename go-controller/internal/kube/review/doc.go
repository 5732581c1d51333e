// Package review asks the API server who a token belongs to. Diagnostics servers do so for each request.
package review
