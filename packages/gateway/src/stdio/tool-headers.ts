import { isObject } from '@toolgate/values/json'
import type { Session } from '../servers/transport/http-endpoint.ts'
import { findParamHeaders, toParamHeaders } from '../servers/transport/param-headers.ts'
import type { GatewayLink } from './gateway-link.ts'
import type { ClientRequest } from './messages.ts'

const MAX_PAGES = 100

/**
 * The headers that tools expect besides their arguments. A client on stdio sends none, so they are read from the list.
 */
export class ToolHeaders {
  readonly #link: Pick<GatewayLink, 'ask'>
  readonly #known = new Map<string, ReturnType<typeof findParamHeaders>>()

  constructor(link: Pick<GatewayLink, 'ask'>) {
    this.#link = link
  }

  /** Returns the headers of a call, if its tool is known. */
  of({ method, params }: ClientRequest): readonly string[] {
    const headers = method === 'tools/call' ? this.#known.get(String(params['name'])) : undefined
    return headers === undefined || typeof headers === 'string' ? [] : toParamHeaders(headers, params['arguments'])
  }

  /** Reads the list again. Returns whether the tool of a call expects headers. @throws {UpstreamError} */
  async learn(request: ClientRequest, session: Session): Promise<boolean> {
    const { method, params } = request
    if (method !== 'tools/call') return false
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const asked = { _meta: params['_meta'], ...(cursor === undefined ? {} : { cursor }) }
      const listed = await this.#link.ask({ method: 'tools/list', params: asked }, session)
      const result = listed?.message['result']
      if (!isObject(result) || !Array.isArray(result['tools'])) return false
      for (const tool of result['tools'])
        if (isObject(tool) && isObject(tool['inputSchema']))
          this.#known.set(String(tool['name']), findParamHeaders(tool['inputSchema']))
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') break
    }
    return this.of(request).length > 0
  }
}
