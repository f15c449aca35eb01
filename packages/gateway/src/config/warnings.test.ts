import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from './load-config.ts'

/** The warnings of a file, as `line:column path: message`. */
function warningsOf(yaml: string): readonly string[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-warnings-'))
  try {
    const file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, yaml)
    const { warnings = [] } = loadConfig(file, { env: {} })
    return warnings.map(
      ({ line, column, path: at, message }) => `${line}:${column} ${at}: ${message.replaceAll(file, 'toolgate.yaml')}`,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const BASE = `servers:
  files: { url: "http://127.0.0.1:9000/mcp", per: shared, tools: { "rm_*": { tags: [danger], category: disk } } }
`

describe('the warnings of a configuration', () => {
  it('name the ports and folders that the instances of all users would share', () => {
    const yaml = `servers:
  a: { command: node, cwd: "." }
  b: { command: node, cwd: ".", per: shared }
  c: { command: node, args: [--port, "9222", --ui-port=80, "--user-data-dir=/profile", /tmp] }
  d: { command: node, env: { PORT: "9000", DATA: "\${configDir}/data", URL: "http://x/y", LEVEL: "1" } }
  e: { command: node, cwd: "work/\${tenant}/\${user}", args: ["--dir=/data/\${tenant}/\${user}", "\${configDir}/toolgate.yaml"] }
  f: { command: node, args: ["--name=\${user}"] }
callers: [{ key: demo-vera, user: vera, tenant: acme }]
policy: [{ allow: ["*"] }]
`
    const share = (text: string) => `the instances of all users share ${text}; write \${user} into it`
    const port = (text: string) => `the instances of all users get the port ${text}, and only one can listen on it`
    assert.deepEqual(
      warningsOf(yaml).map((line) => line.replace(/"[^"]*toolgate-warnings-\w+/, '"<folder>')),
      [
        '2:28 servers.a.cwd: the instances of all users run in this folder; write ${user} into it',
        `4:38 servers.c.args[1]: ${port('9222')}`,
        `4:46 servers.c.args[2]: ${port('80')}`,
        `4:60 servers.c.args[3]: ${share('"/profile"')}`,
        `4:88 servers.c.args[4]: ${share('"/tmp"')}`,
        `5:36 servers.d.env.PORT: ${port('9000')}`,
        `5:50 servers.d.env.DATA: ${share('"<folder>/data"')}`,
        '7:6 servers.f: ${user} without ${tenant} is the same for users of one name in two tenants; write ${tenant}/${user}',
      ],
    )
  })

  it('are resources, prompts and servers of a server that is not there', () => {
    const yaml = `${BASE}policy:
  - allow: ["*", "resource:fiels:*", "prompt:files:*"]
    deny: ["server:fiels", "server:files", "prompt:mail:x"]
`
    assert.deepEqual(warningsOf(yaml), [
      '5:12 policy[0].deny[0]: "server:fiels" names nothing: no server is named "fiels"; did you mean "files"?',
      '5:44 policy[0].deny[2]: "prompt:mail:x" names nothing: no server is named "mail"',
      '4:18 policy[0].allow[1]: "resource:fiels:*" names nothing: no server is named "fiels"; did you mean "files"?',
      '4:38 policy[0].allow[2]: "prompt:files:*" allows nothing: policy[0].deny[1] ("server:files") denies all of it (toolgate.yaml:5:28)',
    ])
  })

  it('is a policy that asks beyond loopback, without the public URL of the page of its approvals', () => {
    const withHost = (host: string, more = '') =>
      warningsOf(`listen: { host: ${host} }
servers: { files: { command: node } }
callers: [{ key: a-secret-key-of-vera-1234567890, user: vera, attributes: { approver: true } }]
${more}`).filter((line) => line.includes('publicUrl'))
    const ask = 'policy: [{ ask: ["files:write"] }]\n'
    const expected =
      '1:17 listen.host: a policy asks a person, but clients get no link to the page of an approval: add "publicUrl", the origin by which people reach the gateway'
    assert.deepEqual(withHost('0.0.0.0', ask), [expected])
    assert.deepEqual(withHost('127.0.0.1', ask), [])
    assert.deepEqual(withHost('0.0.0.0', 'policy: [{ allow: ["*"] }]\n'), [])
    assert.deepEqual(withHost('0.0.0.0', `${ask}publicUrl: https://gate.example.com\n`), [])
  })

  it('are names that nothing can have, whatever the servers list, each with its place', () => {
    const yaml = `${BASE}groups:
  web: { tools: ["fiels:*", "files:read"] }
apps:
  desk: { import: [web], tools: ["read_file"], policy: [{ deny: ["mial:send"] }] }
policy:
  - deny: ["tag:dangr", "write_file", { match: ["files:*", "fiels:rm"] }, "fi*:x", "nope*:x", "rm_*"]
    ask: ["category:dsik", "category:mail"]
    requireTags: [danger, reviewed]
limits: ["fiels:read:1/60", "files:read:1/60"]
calls: { concurrency: [{ match: "mail:send", max: 1 }] }
`
    assert.deepEqual(warningsOf(yaml), [
      '8:12 policy[0].deny[0]: no overlay gives a tool the tag "dangr"; did you mean "danger"?',
      '8:25 policy[0].deny[1]: "write_file" names no tool: every tool of a server has its name before it, as in "files:write_file"; "*:write_file" names it in any server',
      '8:39 policy[0].deny[2]: "fiels:rm" names no tool: no server is named "fiels"; did you mean "files"?',
      '8:84 policy[0].deny[4]: "nope*:x" names no tool: no server is named "nope*"',
      '8:95 policy[0].deny[5]: "rm_*" names no tool: every tool of a server has its name before it, as in "files:rm_*"; "*:rm_*" names it in any server',
      '9:11 policy[0].ask[0]: no overlay gives a tool the category "dsik"; did you mean "disk"?',
      '9:28 policy[0].ask[1]: no overlay gives a tool the category "mail"',
      '10:27 policy[0].requireTags[1]: no overlay gives a tool the tag "reviewed"',
      '11:10 limits[0]: "fiels:read" names no tool: no server is named "fiels"; did you mean "files"?',
      '12:24 concurrency[0]: "mail:send" names no tool: no server is named "mail"',
      '4:18 groups.web.tools[0]: "fiels:*" names no tool: no server is named "fiels"; did you mean "files"?',
      '6:34 apps.desk.tools[0]: "read_file" names no tool: every tool of a server has its name before it, as in "files:read_file"; "*:read_file" names it in any server',
      '6:66 apps.desk.policy[0].deny[0]: "mial:send" names no tool: no server is named "mial"',
    ])
  })

  it('are aliases of tools that nothing can have, and no names that are aliases', () => {
    const yaml = `${BASE}aliases: { cat: "files:read", sh: "shell:bash", sh2: bash }\npolicy: [{ deny: [cat, sh, sh2] }]\n`
    assert.deepEqual(warningsOf(yaml), [
      '3:35 aliases.sh: "shell:bash" names no tool: no server is named "shell"',
      '3:54 aliases.sh2: "bash" names no tool: every tool of a server has its name before it, as in "files:bash"; "*:bash" names it in any server',
    ])
  })

  it('leave out names that a server may list, the gateway’s own tools, hints and everything', () => {
    const yaml = `${BASE}policy: [{ deny: ["files:anything", "files:b*", "*:delete_*", "hint:destructive", "search_tools", "request_*"] }, { allow: ["*"] }]\n`
    assert.deepEqual(warningsOf(yaml), [])
  })

  it('are clauses that another one covers, and conditions that never hold', () => {
    const yaml = `${BASE}callers:
  - { key: a-secret-key-of-vera-1234567890, user: vera, roles: [viewer] }
  - { key: a-secret-key-of-olga-1234567890, user: olga, roles: [approver], for: console }
policy:
  - deny:
      - "files:rm_*"
      - { match: "files:*", when: "'admin' in caller.roles" }
  - ask:
      - files:rm_all
      - { match: "files:write", when: "1 > 2" }
apps:
  desk:
    tools: ["files:*"]
    policy:
      - deny: ["files:read", "files:rm_x"]
`
    const covered = 'policy[0].deny[0] ("files:rm_*") denies all of it (toolgate.yaml:8:9)'
    assert.deepEqual(warningsOf(yaml), [
      '9:9 policy[0].deny[1]: "files:*" never holds: `when` is false for every caller of the configuration',
      `11:9 policy[1].ask[0]: "files:rm_all" changes nothing: ${covered}`,
      '12:9 policy[1].ask[1]: "files:write" never holds: `when` is false for everybody',
      `17:30 apps.desk.policy[0].deny[1]: "files:rm_x" changes nothing: ${covered}`,
    ])
    const issuer = 'oauth: { issuers: [{ issuer: "https://login.example.com" }] }\n'
    assert.equal(warningsOf(issuer + yaml).filter((text) => text.includes('every caller')).length, 0)
  })

  it('are limits that a stricter one covers', () => {
    const yaml = `${BASE}policy: [{ allow: ["*"] }]\nlimits: ["*:1/60", { match: "files:*", max: 2, windowMs: 60000 }]\n`
    assert.deepEqual(warningsOf(yaml), [
      '4:20 limits[1]: "files:*:2/60" changes nothing: limits[0] ("*:1/60") applies too, and is stricter; a limit for some tools is no exception from one for more tools',
    ])
  })
})
