// A server of mcp-go with tools, a resource, a template and a prompt: on stdio, or over HTTP at the address that is given.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type numbers struct {
	A int64 `json:"a" jsonschema:"required"`
	B int64 `json:"b"`
}

type sum struct {
	Sum int64 `json:"sum"`
}

func main() {
	s := server.NewMCPServer("real", "1.0.0", server.WithToolCapabilities(true),
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true))
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Adds two numbers."), mcp.WithInputSchema[numbers](),
		mcp.WithOutputSchema[sum](), mcp.WithReadOnlyHintAnnotation(true)),
		mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in numbers) (sum, error) {
			return sum{in.A + in.B}, nil
		}))
	s.AddTool(mcp.NewTool("shout", mcp.WithString("text", mcp.Required(), mcp.MaxLength(20)),
		mcp.WithString("end", mcp.Enum("!", "?"), mcp.DefaultString("!"))),
		func(_ context.Context, in mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(strings.ToUpper(in.GetString("text", "")) + in.GetString("end", "!")), nil
		})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("it failed")
	})
	s.AddTool(mcp.NewTool("refuse"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no"), nil
	})
	read := func(_ context.Context, in mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if strings.HasSuffix(in.Params.URI, "none") {
			return nil, errors.New("no such note")
		}
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: in.Params.URI, MIMEType: "text/plain", Text: "a note"}}, nil
	}
	s.AddResource(mcp.NewResource("note://one", "one", mcp.WithMIMEType("text/plain")), read)
	s.AddResourceTemplate(mcp.NewResourceTemplate("note://{name}", "note"), read)
	s.AddPrompt(mcp.NewPrompt("review", mcp.WithArgument("language", mcp.RequiredArgument())),
		func(_ context.Context, in mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := "Review the " + in.Params.Arguments["language"] + " code."
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
		})
	if len(os.Args) > 1 {
		log.Fatal(server.NewStreamableHTTPServer(s).Start(os.Args[1]))
	}
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
