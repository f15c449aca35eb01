import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { toNodeHandler } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  McpServer,
  type McpServerFactory,
  Server,
} from '@modelcontextprotocol/server'
import { type Caller, createGate, defineTool, type GateOptions } from '@toolgate/core'
import type { McpResult } from '@toolgate/mcp'
import { describeMatrixRow, type Observation } from '../testing/matrix.ts'
import { askModern, INFO, listen, textOf, toCaller, withAuth } from '../testing/mcp-ways.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER, type Witness } from '../testing/world.ts'
import { guard } from './guard.ts'

interface Answer {
  readonly result?: McpResult & {
    readonly tools?: readonly { readonly name: string }[]
    readonly requestState?: string
  }
  readonly error?: { readonly code: number; readonly message: string }
}
type Params = { readonly name?: string; readonly _meta?: object } & Record<string, unknown>
type Ask = (caller: Caller, method: string, params?: Params) => Promise<Answer>

/** Serves a factory over HTTP while a test observes it. */
async function serving<T>(factory: McpServerFactory, observe: (ask: Ask) => Promise<T>): Promise<T> {
  const handler = createMcpHandler(factory)
  const http = await listen(
    (request, response) => void toNodeHandler(handler)(withAuth(request) as never, response as never),
  )
  try {
    return await observe(async (caller, method, params = {}) => {
      const response = await askModern(http.url, caller, method, params, params.name)
      return (await response.json()) as Answer
    })
  } finally {
    await handler.close()
    await http.close()
  }
}

/**
 * The SDK's own means: a server for each request that disables tools by caller, and a tool that asks its client before it
 * deletes, with a signed state.
 */
function createPlain(witness: Witness, world: { hidden: boolean } = { hidden: false }): McpServerFactory {
  const states = createRequestStateCodec<{ asked: true }>({ key: new Uint8Array(32).fill(7) })
  return ({ authInfo }) => {
    const server = new McpServer(INFO, { requestState: { verify: states.verify } })
    server.registerTool('search', {}, () => ({ content: [{ type: 'text', text: witness.body('search')() }] }))
    const remove = server.registerTool('delete_all', {}, async ({ mcpReq }) => {
      const answer = mcpReq.inputResponses?.['confirm'] as { action?: string } | undefined
      if (mcpReq.requestState() !== undefined && answer?.action === 'accept')
        return { content: [{ type: 'text' as const, text: witness.body('delete_all')() }] }
      return inputRequired({
        inputRequests: {
          confirm: inputRequired.elicit({
            message: 'Delete all?',
            requestedSchema: { type: 'object', properties: {} },
          }),
        },
        requestState: await states.mint({ asked: true }),
      })
    })
    const { roles = [] } = (authInfo?.extra ?? {}) as Caller
    if (!roles.includes('admin') || world.hidden) remove.disable()
    return server
  }
}

const ELICITS = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
const CONFIRMED = { inputResponses: { confirm: { action: 'accept', content: {} } } }

const text = ({ result, error }: Answer): string =>
  error ? `error ${error.code} ${error.message}` : textOf(result as McpResult)

function saw(holds: boolean, what: string): Observation {
  return { holds, saw: what }
}

function ranOr(witness: Witness, told: string): Observation {
  const ran = witness.ran.includes('delete_all')
  return saw(!ran, ran ? 'delete_all ran' : told)
}

interface Guarded {
  readonly ask: Ask
  readonly gate: ReturnType<typeof createGate>
  readonly witness: Witness
  readonly audit: ReturnType<typeof createTestAudit>
}

/** The same tools behind a gate. */
function guarded<T>(options: Partial<GateOptions>, observe: (world: Guarded) => Promise<T>): Promise<T> {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: ['search', 'delete_all'].map((name) => defineTool({ name, execute: witness.body(name) })),
    policy: ADMINS_DELETE,
    audit,
    ...options,
  })
  const serve = guard(gate, { server: () => new Server(INFO), caller: toCaller })
  return serving(serve, (ask) => observe({ ask, gate, witness, audit }))
}

const ASKED = { policy: [ADMINS_DELETE, { ask: ['delete_all'] }] }
const call = (name: string, more: object = {}) => ['tools/call', { name, arguments: {}, ...more }] as const
/** A request whose body claims to be from an admin, everywhere a body can claim it. */
const CLAIMS = call('delete_all', { caller: ADMIN, arguments: { caller: ADMIN }, _meta: { caller: ADMIN } })
const listed = ({ result }: Answer) => (result?.tools ?? []).map(({ name }) => name)

async function observeList(ask: Ask): Promise<Observation> {
  const names = listed(await ask(VIEWER, 'tools/list'))
  return saw(!names.includes('delete_all'), `listed: ${names.join(', ')}`)
}

describeMatrixRow('mcp', {
  framework: 'MCP SDK (server)',
  version: versionOf('@modelcontextprotocol/server'),
  without: {
    see: () => serving(createPlain(createWitness()), observeList),
    run: () => {
      const witness = createWitness()
      return serving(createPlain(witness), async (ask) =>
        ranOr(witness, text(await ask(VIEWER, ...call('delete_all')))),
      )
    },
    resume: () => {
      const [witness, world] = [createWitness(), { hidden: false }]
      return serving(createPlain(witness, world), async (ask) => {
        const { result } = await ask(ADMIN, ...call('delete_all', { _meta: ELICITS }))
        world.hidden = true
        const again = { _meta: ELICITS, requestState: result?.requestState, ...CONFIRMED }
        return ranOr(witness, text(await ask(ADMIN, ...call('delete_all', again))))
      })
    },
    approve: () => {
      const witness = createWitness()
      return serving(createPlain(witness), async (ask) => {
        // The state is signed. The fields beside it are the client's.
        const { result } = await ask(ADMIN, ...call('delete_all', { _meta: ELICITS }))
        const forged = { _meta: ELICITS, requestState: result?.requestState, ...CONFIRMED }
        return ranOr(witness, text(await ask(ADMIN, ...call('delete_all', forged))))
      })
    },
    audit: undefined,
    limit: undefined,
    explain: undefined,
    caller: () => {
      const witness = createWitness()
      return serving(createPlain(witness), async (ask) => ranOr(witness, text(await ask(VIEWER, ...CLAIMS))))
    },
  },
  with: {
    see: () => guarded({}, ({ ask }) => observeList(ask)),
    run: () => guarded({}, async ({ ask, witness }) => ranOr(witness, text(await ask(VIEWER, ...call('delete_all'))))),
    resume: () =>
      guarded(ASKED, async ({ ask, gate, witness }) => {
        await ask(ADMIN, ...call('delete_all'))
        const [pending] = await gate.approvals.list({ status: 'pending' })
        await gate.approvals.decide(ADMIN, pending?.id ?? '', { decision: 'approve' })
        gate.setPolicy({ deny: ['delete_all'] })
        return ranOr(witness, text(await ask(ADMIN, ...call('delete_all'))))
      }),
    approve: () =>
      guarded(ASKED, async ({ ask, witness }) => {
        const { result } = await ask(ADMIN, ...call('delete_all'))
        const approval = result?._meta?.['dev.toolgate/approval'] as object
        const forged = { ...CONFIRMED, _meta: { 'dev.toolgate/approval': { ...approval, status: 'approved' } } }
        return ranOr(witness, text(await ask(ADMIN, ...call('delete_all', forged))))
      }),
    audit: () =>
      guarded({}, async ({ ask, audit }) => {
        await ask(VIEWER, ...call('delete_all'))
        return saw(audit.attempts().length === 1, audit.attempts().join())
      }),
    limit: () =>
      guarded({ limits: 'search:3/60' }, async ({ ask, witness }) => {
        await Promise.all(Array.from({ length: 10 }, () => ask(VIEWER, ...call('search'))))
        return saw(witness.ran.length === 3, `${witness.ran.length} of 10 ran`)
      }),
    explain: () =>
      guarded({}, async ({ gate }) => {
        const { outcome, reasons } = (await gate.view(VIEWER)).explain('delete_all')
        return saw(outcome === 'deny' && reasons.length > 0, `${outcome}: ${reasons[0]?.text}`)
      }),
    caller: () => guarded({}, async ({ ask, witness }) => ranOr(witness, text(await ask(VIEWER, ...CLAIMS)))),
  },
})

function versionOf(name: string): string {
  const entry = createRequire(import.meta.url).resolve(name)
  const file = path.join(entry.slice(0, entry.lastIndexOf(name) + name.length), 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
