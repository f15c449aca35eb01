// A client of the official SDK: connects to the URL with the key, in the era, and does what each line says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type keyed struct{ key string }

func (k keyed) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(request)
}

type line struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

func main() {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{
		Endpoint:   os.Args[1],
		HTTPClient: &http.Client{Transport: keyed{os.Args[2]}},
	}
	options := &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	if os.Args[3] == "modern" {
		options.ProtocolVersion = "2026-07-28"
	}
	session, err := client.Connect(ctx, transport, options)
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked line
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		answer, err := do(ctx, session, asked)
		out := map[string]any{"answer": answer}
		if err != nil {
			out = map[string]any{"error": err.Error()}
		}
		text, _ := json.Marshal(out)
		fmt.Println(string(text))
	}
}

func do(ctx context.Context, session *mcp.ClientSession, asked line) (any, error) {
	if asked.Name != "" {
		return session.CallTool(ctx, &mcp.CallToolParams{Name: asked.Name, Arguments: asked.Arguments})
	}
	names := []string{}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}
