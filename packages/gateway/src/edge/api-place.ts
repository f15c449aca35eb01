import { isObject, readJson } from '@toolgate/values/json'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpApi } from '../admin/http/api.ts'
import { ApiFault, type ApiFaultCode, toErrorResponse } from '../model/faults.ts'
import { type Authenticator, isRefused, toResource } from '../auth/credential.ts'
import { checkOrigin, type OriginRules } from '../auth/origin.ts'
import type { Fleet } from '../servers/fleet.ts'
import { toRequest } from '../util/to-request.ts'
import { serverOf } from '../model/server-of.ts'
import { ClientGone, readBody } from '../model/body.ts'
import { RpcFault, type RpcRule } from '../model/protocol.ts'
import { ownerOf } from '../model/owner.ts'
import { type Elsewhere, elsewhereFault } from '../replicas/elsewhere.ts'

interface ApiPlaceDeps {
  readonly elsewhere: () => Pick<Elsewhere, 'askHomeOf' | 'check' | 'placeAtHome'> | undefined
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly origins: OriginRules
  readonly fleet: Pick<Fleet, 'hasUserLists' | 'needsInstance'>
  /** Returns the caller that a person's request is about. */
  readonly subjectOf: HttpApi['subjectOf']
  readonly isStopping: () => boolean
  readonly onFault: (error: unknown) => void
}

/** A request whose body was already read, in the form that `@hono/node-server` accepts. */
type ReadRequest = IncomingMessage & { rawBody?: Buffer }

const FAULTS: { readonly [Rule in RpcRule]?: ApiFaultCode } = {
  body_too_large: 'body_too_large',
  body_not_json: 'body_invalid',
  forward_refused: 'forward_refused',
  session_elsewhere: 'home_elsewhere',
  owner_lost: 'owner_lost',
  owner_unreachable: 'owner_unreachable',
  stopping: 'stopping',
}

/**
 * Forwards requests to the HTTP API to the home of an agent's user, as for MCP requests. This applies to calls of a
 * server with one instance per user, and to everything that depends on the lists of such an instance. So people see
 * what the user sees, and their calls from the console run at the same instance.
 */
export class ApiPlace {
  readonly #deps: ApiPlaceDeps

  constructor(deps: ApiPlaceDeps) {
    this.#deps = deps
  }

  /** Returns whether another replica forwarded a request after checking its origin. */
  isForwarded(request: IncomingMessage): boolean {
    try {
      return this.#deps.elsewhere()?.check(request) === true
    } catch {
      return false
    }
  }

  /** Returns `false` for a request that this replica answers. Never rejects. */
  async place(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    try {
      return await this.#place(request, response)
    } catch (error) {
      if (error instanceof ClientGone || response.headersSent) return true
      const code = error instanceof RpcFault ? FAULTS[error.rule] : undefined
      const fault = code ? new ApiFault(code, (error as RpcFault).message, (error as RpcFault).headers) : error
      const answer = toErrorResponse(fault, this.#deps.onFault)
      response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), 'cache-control': 'no-store' })
      response.end(await answer.text())
      return true
    }
  }

  async #place(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const { elsewhere, fleet, isStopping, origins } = this.#deps
    const owners = elsewhere()
    // A home trusts the forwarding replica to have checked the origin.
    if (!owners || (!owners.check(request) && checkOrigin(request.headers, origins))) return false
    const url = new URL(request.url ?? '/', 'http://gateway')
    const isCall = url.pathname === '/api/call' && request.method === 'POST'
    const mayNeed = fleet.hasUserLists ? AGENTS.has(url.pathname) : isCall && fleet.needsInstance()
    if (fleet.hasUserLists && request.method === 'GET' && isAboutCaller(url)) {
      const shown = await this.#deps.subjectOf(toRequest(request), () => readBody(request))
      const owner = shown && ownerOf(shown.caller)
      return owner !== undefined && owners.askHomeOf(owner, { request, response })
    }
    if (isComparison(url)) {
      // A comparison reads what the asker's call would change, so it runs at the instance of their home.
      const compared = await this.#deps.subjectOf(toRequest(request), () => readBody(request))
      if (compared?.tool === undefined || !fleet.needsInstance(serverOf(compared.tool))) return false
      if (owners.check(request) && isStopping()) throw elsewhereFault()
      const text = await readBody(request)
      ;(request as ReadRequest).rawBody = Buffer.from(text)
      return owners.placeAtHome({ caller: compared.caller, request, response, text })
    }
    if (TRIALS.has(url.pathname) && request.method === 'POST' && fleet.needsInstance())
      return this.#placeTrial(owners, request, response)
    if (!mayNeed) return false
    // The asker looks for the home again after this replica has given it up.
    if (owners.check(request) && isCall && isStopping()) throw elsewhereFault()
    const credential = await this.#deps.authenticator.authenticate(
      request.headers,
      toResource(url.searchParams.get('app') ?? undefined),
    )
    if (isRefused(credential) || credential.for !== 'mcp') return false
    const asked = { caller: credential.caller, request, response }
    if (request.method !== 'POST') return owners.placeAtHome(asked)
    const text = await readBody(request)
    ;(request as ReadRequest).rawBody = Buffer.from(text)
    if (!fleet.hasUserLists && !fleet.needsInstance(serverIn(text))) return false
    return owners.placeAtHome({ ...asked, text })
  }

  async #placeTrial(
    owners: Pick<Elsewhere, 'askHomeOf' | 'check' | 'placeAtHome'>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<boolean> {
    const { fleet, isStopping, subjectOf } = this.#deps
    let text: string | undefined
    const readText = async () => {
      text = await readBody(request)
      ;(request as ReadRequest).rawBody = Buffer.from(text)
      return text
    }
    const tried = await subjectOf(toRequest(request), readText)
    if (tried?.tool === undefined || text === undefined) return false
    const { tool, caller, isCall } = tried
    const asked = { caller, request, response, text }
    if (isCall) {
      if (!fleet.hasUserLists && !fleet.needsInstance(serverOf(tool))) return false
      if (owners.check(request) && isStopping()) throw elsewhereFault()
      return owners.placeAtHome(asked)
    }
    // A dry run does not make this replica a user's home.
    const owner = fleet.hasUserLists ? ownerOf(caller) : undefined
    return owner !== undefined && owners.askHomeOf(owner, asked)
  }
}

/** The paths at which a person acts as a caller: a dry run, and a real call. */
const TRIALS: ReadonlySet<string> = new Set(['/api/why', '/api/tool/call'])

/** Whether a person asks about a caller. */
function isAboutCaller({ searchParams }: URL): boolean {
  return searchParams.has('as') || searchParams.has('caller')
}

function isComparison({ pathname }: URL): boolean {
  return pathname.startsWith('/api/approvals/') && pathname.endsWith('/compare')
}

/** The paths that depend on the lists of an agent's user. */
const AGENTS: ReadonlySet<string> = new Set(['/api/list', '/api/decide', '/api/call'])

/** Returns the server of the tool that a body names. The replica that answers reports an invalid body. */
function serverIn(text: string): string {
  try {
    const body: unknown = readJson(text, { integers: 'exact' })
    const tool = isObject(body) ? body['tool'] : undefined
    return typeof tool === 'string' ? serverOf(tool) : ''
  } catch {
    return ''
  }
}
