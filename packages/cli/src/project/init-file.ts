/** Returns the text of a new configuration: no server, two roles, one person. */
export function initFile({
  reader,
  writer,
  owner,
}: {
  readonly reader: string
  readonly writer: string
  readonly owner: string
}): string {
  return `# The configuration of a Toolgate gateway. "toolgate check" lists its problems, with their lines.

# The MCP servers behind the gateway. The name of a server is the namespace of its tools: files:read_file.
# Add yours:  toolgate add <name> -- <command> [arguments]
#             toolgate add <name> <url>
servers: {}

# Who may connect. The keys are in .toolgate/keys.json; this file has their hashes only.
callers:
  - { user: reader, roles: [reader], keyHash: "${reader}" }
  - { user: writer, roles: [writer], keyHash: "${writer}" }
  # A person: opens the console and approves calls. No agent gets this key.
  - { user: owner, for: console, roles: [approver, operator], keyHash: "${owner}" }

# Policies only tighten: if one denies, the call is denied. "toolgate why <tool> --as reader" explains a decision.
policy:
  - name: roles
    allow:
      - tag:read # everybody
      - { match: "*", when: "'writer' in caller.roles" }
    ask:
      # A person approves each call of a tool that is tagged neither read nor write.
      - match: "*"
        unless: "'read' in tool.tags || 'write' in tool.tags"
        message: This tool is tagged neither read nor write. # for the person who decides

# selector:max/seconds, for each user and tool.
limits: ["*:300/60"]

# Every attempt leaves a record: "toolgate audit tail". "facts": what rules read of an input is kept, so that "toolgate what-if"
# and "toolgate suggest" can judge past calls. Of the rest only the first 200 characters are kept, without secrets.
audit: { store: sqlite, path: ./.toolgate/audit.db, inputs: facts }

# Approvals, halts, made keys and counts of limits survive a restart: "toolgate keys create", "toolgate approvals".
state: { store: sqlite, path: ./.toolgate/state.db }

listen: { host: 127.0.0.1, port: 8787 }
`
}
