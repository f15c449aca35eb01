import type { ItemKind } from '@toolgate/core/toolset'

/** `GET /api/list?kind=&app=`: the items of one kind that an agent sees. For agents' keys and tokens. */
export interface AgentItemsBody {
  readonly kind: ItemKind
  readonly items: readonly AgentItemRow[]
  /** Why items may be missing now: a server is starting or down. */
  readonly incomplete?: string
}

export interface AgentItemRow {
  /** The value of `tool` for `/api/decide` and `/api/call`. */
  readonly id: string
  readonly name: string
  readonly title?: string
  readonly description: string
  /** A JSON Schema. Present for tools and prompts. */
  readonly inputSchema?: unknown
  /** The URI of a resource, or the URI template of a template. */
  readonly uri?: string
  readonly mimeType?: string
}

/** The body of `POST /api/decide?app=` and `POST /api/call?app=`, for agents' keys and tokens. */
export interface AgentCallRequestBody {
  /**
   * @minLength 1
   */
  readonly tool: string
  /** Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>
}

/** `POST /api/decide`: the decision that the call would get now. No tool runs, and limits do not count the request. */
export type AgentDecisionBody = { readonly tool: string } & (
  | { /** `ask`: a person must approve, or has already. */ readonly outcome: 'allow' | 'ask' }
  | AgentRefusal
)

/** Why a call is refused, as far as its caller may know. */
export interface AgentRefusal {
  /** `wait`: it may be allowed later. */
  readonly outcome: 'deny' | 'wait'
  /** The text for the model. */
  readonly text: string
  /** The time until a used-up limit allows calls again. */
  readonly retryAfterSeconds?: number
}

/** `POST /api/call`: the outcome of the call. `text` is for the model. */
export type AgentCallBody = { readonly callId: string; readonly text: string } & (
  | {
      readonly status: 'done'
      /** Whether the result reports a failure of the tool. */
      readonly isError: boolean
      /** The server's result, such as MCP's `CallToolResult`. */
      readonly result: unknown
    }
  | ({ readonly status: 'refused' } & AgentRefusal)
  | {
      /** A person must decide. Make the same call again after that. */
      readonly status: 'waiting'
      readonly approval: {
        readonly id: string
        /** Wall-clock milliseconds. */
        readonly expiresAt: number
        /** The page where a person decides. */
        readonly url?: string
      }
    }
  | { readonly status: 'failed'; /** Such as `tool_failed`. */ readonly reason: string }
)
