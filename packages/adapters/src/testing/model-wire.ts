import type { IncomingHttpHeaders } from 'node:http'

/** One answer of a scripted model, in no provider's words. */
export interface ScriptedAnswer {
  readonly text?: string | undefined
  readonly calls?: readonly ScriptedCall[] | undefined
  /** Default: 10 in, 5 out. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  /** Answered in place of all that. Default 200. */
  readonly status?: number | undefined
  /** Nothing is answered before it resolves. */
  readonly after?: Promise<unknown> | undefined
  /** How many parts of a stream are sent before the connection breaks. Default: all, and it ends as it should. */
  readonly breaksAfter?: number | undefined
  /** Between the parts of a stream, nothing is sent before it resolves. */
  readonly between?: (() => Promise<unknown>) | undefined
}

export interface ScriptedCall {
  readonly name: string
  /** An object, or the very text that is sent for one. Default: no arguments. */
  readonly input?: unknown
  /** Default: `call-<request>-<call>`, each counted from 1. */
  readonly id?: string | undefined
}

/** An answer with nothing left to default. */
export interface FullAnswer {
  readonly id: string
  readonly model: string
  readonly text: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly usage: { readonly input: number; readonly output: number }
}

/** One request as a model gets it. */
export interface ModelRequest {
  readonly wire: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The very bytes, as text. */
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into it as it likes
  readonly body: any
  readonly stream: boolean
  /** Names of the tools, as they were sent. */
  readonly tools: readonly string[]
}

/** How a provider's API looks on the wire. */
export interface ModelWire {
  readonly name: string
  /** Whether a path, without its query, is this API's. */
  readonly matches: (path: string) => boolean
  /** What a test asks about a request; `body` is parsed JSON. */
  readonly read: (
    body: Readonly<Record<string, unknown>>,
    path: string,
  ) => { readonly model: string; readonly stream: boolean; readonly tools: readonly string[] }
  readonly toJson: (answer: FullAnswer) => unknown
  /** The parts of a stream, each as its server-sent event's text with the empty line behind it. */
  readonly toEvents: (answer: FullAnswer) => readonly string[]
  readonly toError: (status: number, message: string) => unknown
}
