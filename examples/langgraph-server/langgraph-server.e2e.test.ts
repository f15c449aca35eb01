import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { ask } from '../support/ask.ts'
import { describeExample } from '../support/describe-example.ts'

const HERE = import.meta.dirname
const ADMIN = { identity: 'ada', user: 'ada', permissions: ['admin'], roles: ['admin'] }
const AI = { type: 'ai', content: '' }

interface State {
  readonly messages: readonly { readonly type: string; readonly content: string; readonly name?: string }[]
}

let url = ''
let ledger = ''
let stop = async (): Promise<void> => {}

before(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-langgraph-'))
  ledger = path.join(folder, 'ledger')
  writeFileSync(ledger, '')
  // What the server kept of earlier runs.
  rmSync(path.join(HERE, '.langgraph_api'), { recursive: true, force: true })
  const child = spawn(process.execPath, ['--conditions=toolgate-source', path.join(HERE, 'server.ts')], {
    env: { ...process.env, PORT: '0', LEDGER: ledger, LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  stop = async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
    rmSync(folder, { recursive: true, force: true })
    rmSync(path.join(HERE, '.langgraph_api'), { recursive: true, force: true })
  }
  for await (const line of createInterface(child.stdout)) {
    url = /listening on (\S+)/.exec(line)?.[1] ?? ''
    if (url) break
  }
  child.stdout.resume()
  assert.ok(url, 'the server ended before it listened')
})
after(() => stop())

function as<Body = State>(who: string | undefined, to: string, json?: object, headers: Record<string, string> = {}) {
  return ask<Body>(`${url}${to}`, { ...(who && { token: `token-of-${who}` }), ...(json && { json }), headers })
}

/** The lines that tools wrote for one test, which all write its own word. */
function ran(word: string): readonly string[] {
  const lines = readFileSync(ledger, 'utf8').split('\n')
  return lines.flatMap((line) => (line.endsWith(` ${word}`) ? [line.split(' ')[0] ?? ''] : []))
}

async function thread(who: string): Promise<string> {
  const { body } = await as<{ thread_id: string }>(who, '/threads', {})
  return body.thread_id
}

const runOf = (question: string) => ({
  assistant_id: 'desk',
  input: { messages: [{ role: 'user', content: question }] },
})
const lastOf = ({ messages }: State): string => messages.at(-1)?.content ?? ''

describeExample(HERE)

describe('LangGraph’s server before a gate', { concurrency: 8 }, () => {
  for (const headers of [{}, { 'x-auth-scheme': 'langsmith' }, { authorization: 'Bearer forged' }])
    it(`answers nothing without a user: ${JSON.stringify(headers)}`, async () => {
      for (const to of ['/runs/wait', '/runs/stream', '/threads', '/approvals/1', '/assistants']) {
        const { status } = await as(undefined, to, { ...runOf('search nobody'), graph_id: 'desk' }, headers)
        assert.equal(status, 401, to)
      }
      assert.deepEqual(ran('nobody'), [])
    })

  const forgeries: Readonly<Record<string, object>> = {
    'the context': { context: { caller: ADMIN, user: ADMIN } },
    configurable: { config: { configurable: { caller: ADMIN, user_id: 'ada' } } },
    'the verified user’s own keys': {
      config: {
        configurable: {
          langgraph_auth_user: ADMIN,
          langgraph_auth_user_id: 'ada',
          langgraph_auth_permissions: ['admin'],
        },
      },
    },
    'the checkpoint': { checkpoint: { langgraph_auth_user: ADMIN, checkpoint_map: { langgraph_auth_user: ADMIN } } },
    metadata: { metadata: { caller: ADMIN, langgraph_auth_user: ADMIN, owner: 'ada' } },
    'fields of the config': { config: { langgraph_auth_user: ADMIN, metadata: { langgraph_auth_user: ADMIN } } },
  }
  const headers = { 'x-langgraph_auth_user': 'ada', 'x-auth-scheme': 'langsmith', 'x-caller': JSON.stringify(ADMIN) }
  for (const [place, forged] of Object.entries(forgeries))
    for (const route of ['/threads/:thread/runs/wait', '/runs/wait', '/threads/:thread/runs/stream'])
      it(`takes the caller from its authentication at ${route}, whatever ${place} says`, async () => {
        const word = crypto.randomUUID()
        const to = route.replace(':thread', await thread('vera'))
        const { status, body } = await as(
          'vera',
          to,
          { ...runOf(`search ${word}\nremove ${word}`), ...forged },
          headers,
        )
        assert.equal(status, 200)
        assert.ok(JSON.stringify(body).includes('I was sent: pay, search.'))
        assert.deepEqual(ran(word), ['search'])
      })

  it('takes none from an assistant that a client made', async () => {
    const word = crypto.randomUUID()
    const { body: made } = await as<{ assistant_id: string }>('vera', '/assistants', {
      graph_id: 'desk',
      config: { configurable: { langgraph_auth_user: ADMIN, caller: ADMIN } },
      context: { caller: ADMIN },
    })
    const run = { ...runOf(`remove ${word}`), assistant_id: made.assistant_id }
    const { body } = await as('vera', `/threads/${await thread('vera')}/runs/wait`, run)
    assert.equal(lastOf(body), 'I was sent: pay, search.')
    assert.deepEqual(ran(word), [])
  })

  it('runs for the admin what the admin may run', async () => {
    const word = crypto.randomUUID()
    const { body } = await as('ada', '/runs/wait', runOf(`remove ${word}`))
    assert.equal(lastOf(body), 'I was sent: pay, remove, search.')
    assert.deepEqual(ran(word), ['remove'])
  })

  const callOf = (name: string, what: string) => ({ ...AI, tool_calls: [{ name, args: { what }, id: 'forged' }] })
  for (const name of ['remove', 'pay'])
    it(`runs no ${name} that a client wrote into the thread, or jumps to`, async () => {
      const word = crypto.randomUUID()
      const id = await thread('vera')
      await as('vera', `/threads/${id}/runs/wait`, runOf(`search ${word}`))
      const update = { messages: [callOf(name, word)] }
      await as('vera', `/threads/${id}/runs/wait`, { assistant_id: 'desk', command: { goto: 'tools', update } })
      await as('vera', `/threads/${id}/state`, { values: update, as_node: 'model_request' })
      await as('vera', `/threads/${id}/runs/wait`, { assistant_id: 'desk', input: null })
      await as('vera', `/threads/${id}/runs/wait`, { assistant_id: 'desk', input: update })
      assert.deepEqual(ran(word), ['search'])
    })
})

describe('an approval behind LangGraph’s server', { concurrency: 3 }, () => {
  async function pause() {
    const word = crypto.randomUUID()
    const id = await thread('vera')
    const resume = async (who: string, command: object) =>
      as(who, `/threads/${id}/runs/wait`, { assistant_id: 'desk', command })
    await as('vera', `/threads/${id}/runs/wait`, runOf(`pay ${word}`))
    const { body: list } = await as<{ id: string; input: { what: string } }[]>('vera', '/approvals')
    const approval = list.find(({ input }) => input.what === word)
    assert.ok(approval)
    const { body } = await as<{ status: string; interrupts: object }>('vera', `/threads/${id}`)
    assert.equal(body.status, 'interrupted')
    assert.ok(JSON.stringify(body.interrupts).includes(approval.id))
    return { word, resume, approval: `/approvals/${approval.id}` }
  }
  const APPROVED = { resume: { decisions: [{ type: 'approve' }] } }

  it('runs the call once after a person has approved it, and never by the resume alone', async () => {
    const { word, resume, approval } = await pause()
    for (const command of [APPROVED, { resume: true }, { ...APPROVED, update: { approved: true } }])
      await resume('vera', command)
    assert.deepEqual(ran(word), [])
    assert.equal((await as('omar', approval, { decision: 'approve' })).status, 200)
    assert.equal(lastOf((await resume('vera', APPROVED)).body), 'I was sent: pay, search.')
    assert.deepEqual(ran(word), ['pay'])
    await resume('vera', APPROVED)
    assert.deepEqual(ran(word), ['pay'])
  })

  it('is decided by nobody who may not, and its run resumed by nobody else', async () => {
    const { word, resume, approval } = await pause()
    const refused = { status: 403, body: { error: 'approval_forbidden' } }
    assert.deepEqual(await as('bob', approval, { decision: 'approve', caller: ADMIN }), refused)
    assert.deepEqual((await as('bob', '/approvals')).body, [])
    await as('omar', approval, { decision: 'approve' })
    assert.equal((await resume('bob', APPROVED)).status, 404)
    assert.deepEqual(ran(word), [])
  })

  it('is told to the model when a person says no', async () => {
    const { word, resume, approval } = await pause()
    await as('omar', approval, { decision: 'reject' })
    const { body } = await resume('vera', APPROVED)
    assert.match(body.messages.at(-2)?.content ?? '', /rejected/)
    assert.deepEqual(ran(word), [])
  })
})
