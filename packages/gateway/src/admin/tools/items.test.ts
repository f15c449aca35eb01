import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { definePrompt, defineResource, defineTemplate, type Source } from '@toolgate/core/toolset'
import type { CallerConfig } from '../../config/config.ts'
import { apiOf, heartOf, nameFor } from '../../testing/heart.ts'
import type { ErrorBody, ToolBody, ToolsBody, WhyBody } from '../../model/rows.ts'

const OWN = 'http://127.0.0.1:8787'
const SECRET = 'resource:files:file:///secret.md'

describe('resources, templates and prompts in the API', () => {
  it('are listed by their kind, hidden ones with the reason; without a kind the list has tools', async () => {
    const listed: [kind: string, ids: string[]][] = []
    for (const query of ['', '&kind=tool', '&kind=resource', '&kind=template', '&kind=prompt']) {
      const [status, body] = await ask<ToolsBody>(`/api/tools?as=vera${query}`)
      assert.equal(status, 200)
      assert.ok(body.tools.every(({ kind }) => kind === body.kind))
      listed.push([body.kind, body.tools.map(({ id, visible }) => `${id} ${visible}`)])
    }
    assert.deepEqual(listed, [
      ['tool', ['files:read true']],
      ['tool', ['files:read true']],
      ['resource', ['resource:files:file:///docs/a.md true', `${SECRET} false`]],
      ['template', ['resource:files:file:///{+path} true']],
      ['prompt', ['prompt:files:summarize true']],
    ])
    const [, { tools }] = await ask<ToolsBody>('/api/tools?as=vera&kind=resource')
    assert.deepEqual(
      tools.map(({ wireName, reasons: [reason] }) => [wireName, reason?.code]),
      [
        ['file:///docs/a.md', undefined],
        ['file:///secret.md', 'policy_denied'],
      ],
    )
  })

  it('an unknown kind is refused with the known ones', async () => {
    const [status, { error }] = await ask<ErrorBody>('/api/tools?as=vera&kind=tools')
    assert.deepEqual([status, error.code], [400, 'query_invalid'])
    assert.match(error.message, /"kind" must be one of tool, resource, template, prompt/)
  })

  it('are explained by their id, and so is a resource that nobody lists', async () => {
    const explained = [
      'resource:files:file:///docs/a.md',
      SECRET,
      'resource:files:file:///docs/unlisted.md',
      `resource:files:file:///docs/${'long/'.repeat(200)}a.md`,
      'resource:files:file:///other.md',
      'resource:files:file:///docs/../secret.md',
      'resource:nowhere:file:///a.md',
      'resource:files:file:///{+path}',
      'prompt:files:summarize',
      'prompt:files:other',
    ]
    const answers = await Promise.all(
      explained.map(async (id) => {
        const [status, body] = await ask<WhyBody>(`/api/why?tool=${encodeURIComponent(id)}&as=vera`)
        assert.deepEqual([status, body.tool], [200, id])
        return [body.kind, body.outcome, body.visible, body.reasons[0]?.code]
      }),
    )
    assert.deepEqual(answers, [
      ['resource', 'allow', true, undefined],
      ['resource', 'deny', false, 'policy_denied'],
      ['resource', 'allow', true, undefined],
      ['resource', 'allow', true, undefined],
      ['resource', 'deny', false, 'policy_not_allowed'],
      ['resource', 'deny', false, 'tool_not_found'],
      ['resource', 'deny', false, 'tool_not_found'],
      ['template', 'allow', true, undefined],
      ['prompt', 'allow', true, undefined],
      ['prompt', 'deny', false, 'tool_not_found'],
    ])
    const [status, { error }] = await ask<ErrorBody>(`/api/why?tool=resource:files:${'x'.repeat(2400)}&as=vera`)
    assert.deepEqual([status, error.code], [400, 'query_invalid'])
  })

  it('have a page each, without exports, which are of tools; an unlisted one has none', async () => {
    const [status, body] = await ask<ToolBody>(`/api/tool?tool=${encodeURIComponent(SECRET)}&as=vera`)
    assert.deepEqual([status, body.tool.kind, body.tool.visible, body.exports], [200, 'resource', false, []])
    const [, tool] = await ask<ToolBody>('/api/tool?tool=files:read&as=vera')
    assert.notEqual(tool.exports.length, 0)
    const [missing, { error }] = await ask<ErrorBody>('/api/tool?tool=prompt:files:sumarize&as=vera')
    assert.equal(missing, 404)
    assert.match(error.message, /Did you mean "prompt:files:summarize"/)
  })
})

async function ask<Body>(path: string): Promise<[status: number, body: Body]> {
  const read = ({ uri }: { uri: string }) => ({ contents: [{ uri, text: 'x' }] })
  const files: Source = {
    name: 'files',
    namespaces: ['files'],
    tools: () => [
      defineTool({ namespace: 'files', name: 'read' }),
      defineResource({ uri: 'file:///docs/a.md', namespace: 'files', execute: read }),
      defineResource({ uri: 'file:///secret.md', namespace: 'files', execute: read }),
      defineTemplate({ uriTemplate: 'file:///{+path}', namespace: 'files' }),
      definePrompt({ name: 'summarize', namespace: 'files', execute: () => ({ messages: [] }) }),
    ],
    unlisted: (uri) => defineResource({ uri, namespace: 'files', execute: read }),
  }
  const gate = createGate({
    sources: [files],
    policy: {
      allow: ['*', 'resource:files:file:///docs/*', 'resource:files:file:///{+path}', 'prompt:files:*'],
      deny: ['resource:files:file:///secret*'],
    },
    pins: 'off',
  })
  try {
    const api = apiWith(gate)
    const headers = { host: '127.0.0.1:8787', authorization: 'Bearer key-of-owner' }
    const answer = await api.fetch(new Request(`${OWN}${path}`, { headers }))
    return [answer.status, (await answer.json()) as Body]
  } finally {
    await gate.close()
  }
}

function apiWith(gate: ReturnType<typeof createGate>): ReturnType<typeof apiOf> {
  const callers = [person('owner', 'console'), person('vera', 'mcp')]
  return apiOf(heartOf({ gate, callers, catalog: { lists: nameFor((id) => id) } }))
}

function person(user: string, kind: 'console' | 'mcp'): CallerConfig {
  const text = `key-of-${user}`
  const caller = user === 'owner' ? { user, roles: ['approver'] } : { user }
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}
