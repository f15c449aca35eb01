import type { ItemKind } from '@toolgate/core/toolset'

/** `GET /api/list?kind=&app=`: the items of one kind that an agent sees. For agents' keys and tokens. */
export interface AgentItemsBody {
  readonly kind: ItemKind
  readonly items: readonly AgentItemRow[]
}

export interface AgentItemRow {
  /** What `/api/decide` and `/api/call` take as `tool`. */
  readonly id: string
  readonly name: string
  readonly title?: string
  readonly description: string
  /** A JSON Schema, of tools and prompts. */
  readonly inputSchema?: unknown
  /** Of resources, and the URI template of templates. */
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

/** `POST /api/decide`: what the call would get now. Nothing runs, and no limit is taken. */
export type AgentDecisionBody = { readonly tool: string } & (
  | { /** `ask`: a person must approve, or has already. */ readonly outcome: 'allow' | 'ask' }
  | AgentRefusal
)

/** Why a call is refused, as far as its caller may know. */
export interface AgentRefusal {
  /** `wait`: it may be allowed later. */
  readonly outcome: 'deny' | 'wait'
  /** For the model. */
  readonly text: string
  /** Of a used-up limit. */
  readonly retryAfterSeconds?: number
}

/** `POST /api/call`: the outcome of the call. `text` is for the model. */
export type AgentCallBody = { readonly callId: string; readonly text: string } & (
  | {
      readonly status: 'done'
      /** The tool ran and says that it failed. */
      readonly isError: boolean
      /** The server's result, such as MCP's `CallToolResult`. */
      readonly result: unknown
    }
  | ({ readonly status: 'refused' } & AgentRefusal)
  | {
      /** A person decides. Make the same call again then. */
      readonly status: 'waiting'
      readonly approval: {
        readonly id: string
        /** Wall-clock milliseconds. */
        readonly expiresAt: number
        /** Where a person decides. */
        readonly url?: string
      }
    }
  | { readonly status: 'failed'; /** Such as `tool_failed`. */ readonly reason: string }
)
