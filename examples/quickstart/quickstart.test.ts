import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import { type CallOutcome, createGate, defineTool, type Tool } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import { loadConfig } from '@toolgate/gateway'

/** The tools that the three servers list. The end-to-end tests ask the servers themselves. */
const LISTED = {
  files: `read_file read_text_file read_media_file read_multiple_files list_directory list_directory_with_sizes
    directory_tree search_files get_file_info list_allowed_directories write_file edit_file move_file create_directory`,
  memory: `read_graph search_nodes open_nodes create_entities create_relations add_observations
    delete_entities delete_observations delete_relations`,
  everything: `echo get-annotated-message get-env get-resource-links get-resource-reference get-structured-content
    get-sum get-tiny-image trigger-long-running-operation gzip-file-as-resource toggle-simulated-logging
    toggle-subscriber-updates`,
}

describe('the quickstart', () => {
  const config = loadConfig(path.join(import.meta.dirname, 'toolgate.yaml'), { env: {} })
  const ran: string[] = []
  const tools = config.servers.flatMap((server) =>
    LISTED[server.name as keyof typeof LISTED].split(/\s+/).map((name): Tool => {
      const overlays = [...server.tools].filter(([pattern]) => matchesGlob(parseGlob(pattern), name))
      const tags = overlays.flatMap(([, overlay]) => overlay.tags ?? [])
      return defineTool({ namespace: server.name, name, tags, hintsTrusted: false, execute: () => ran.push(name) })
    }),
  )
  const availability = memoryAvailability({ lab: { available: false } })
  const groups = new Map(config.groups.map(({ name, availableWhen: _, ...group }) => [name, group]))
  const gate = createGate({ tools, groups, policy: config.policy, limits: config.limits, availability })
  const viewOf = (user: string) => gate.view(config.callers.find(({ caller }) => caller.user === user)?.caller ?? {})
  const idsOf = async (user: string): Promise<readonly string[]> => (await viewOf(user)).ids
  const call = async (user: string, tool: string, input: object): Promise<CallOutcome> => {
    const view = await viewOf(user)
    return view.call({ tool, input })
  }

  it('has no problem, and no selector without a match', () => {
    assert.deepEqual(gate.lint(), [])
  })

  it('shows each of the three users strictly more tools', async () => {
    const [viewer, operator, admin] = await Promise.all(['viewer', 'operator', 'admin'].map(idsOf))
    assert.ok(viewer?.every((id) => operator?.includes(id)) && operator?.every((id) => admin?.includes(id)))
    assert.deepEqual([viewer?.length, operator?.length, admin?.length], [18, 25, 32])
  })

  it('shows the environment to the admin only, although the server calls it read-only', async () => {
    assert.equal((await idsOf('viewer')).includes('everything:get-env'), false)
    assert.equal((await idsOf('operator')).includes('everything:get-env'), false)
    assert.equal((await idsOf('admin')).includes('everything:get-env'), true)
  })

  it('keeps every path inside the workspace, however it is written', async () => {
    ran.length = 0
    const outside: [tool: string, input: object][] = [
      ['files:read_file', { path: '/etc/passwd' }],
      ['files:read_file', { path: '../toolgate.yaml' }],
      ['files:read_file', { path: '~/.ssh/id_rsa' }],
      ['files:read_multiple_files', { paths: ['invoices.csv', '/etc/passwd'] }],
      ['files:move_file', { source: 'invoices.csv', destination: '../x' }],
      ['files:move_file', { source: '../toolgate.yaml', destination: 'x' }],
      ['files:write_file', { path: '../x', content: '' }],
    ]
    for (const user of ['operator', 'admin'])
      for (const [tool, input] of outside) {
        const { status, text } = await call(user, tool, input)
        assert.deepEqual(
          [status, text],
          ['refused', 'TOOL_CALL_BLOCKED: Only files in the workspace can be used.'],
          tool,
        )
      }
    assert.deepEqual(ran, [])
    const inside = path.join(import.meta.dirname, 'workspace/notes/plan.md')
    assert.equal((await call('operator', 'files:read_file', { path: inside })).status, 'done')
    assert.equal((await call('operator', 'files:move_file', { source: 'a', destination: 'notes/b' })).status, 'done')
    assert.equal((await call('operator', 'files:list_allowed_directories', {})).status, 'done')
  })

  it('asks a person before an operator writes a file, but not before the admin does', async () => {
    assert.equal((await call('operator', 'files:write_file', { path: 'a', content: '' })).status, 'waiting')
    assert.equal((await call('admin', 'files:write_file', { path: 'a', content: '' })).status, 'done')
    assert.equal((await call('viewer', 'files:write_file', { path: 'a', content: '' })).status, 'refused')
  })

  it('has a limit that is low enough to hit by hand', async () => {
    for (let i = 0; i < 5; i++)
      assert.equal((await call('viewer', 'everything:echo', { message: 'hi' })).status, 'done')
    assert.match((await call('viewer', 'everything:echo', { message: 'hi' })).text, /rate limited \(5\/60\)/)
  })
})
