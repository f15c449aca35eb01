import type { IncomingHttpHeaders } from 'node:http'

/** One answer of a scripted model, independent of a provider's format. */
export interface ScriptedAnswer {
  readonly text?: string | undefined
  readonly calls?: readonly ScriptedCall[] | undefined
  /** The number of tokens. Default: 10 in, 5 out. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  /** The HTTP status. Any status but 200 answers with an error whose message is `text`. Default 200. */
  readonly status?: number | undefined
  /** A promise that the answer waits for. */
  readonly after?: Promise<unknown> | undefined
  /** How many parts of a stream are sent before the connection breaks. Default: all, with a regular end. */
  readonly breaksAfter?: number | undefined
  /** Returns a promise that each part of a stream waits for. */
  readonly between?: (() => Promise<unknown>) | undefined
}

interface ScriptedCall {
  readonly name: string
  /** The input: an object, or a text that is sent unchanged. Default: no arguments. */
  readonly input?: unknown
  /** The call's id. Default: `call-<request>-<call>`, each counted from 1. */
  readonly id?: string | undefined
}

/** An answer with all defaults filled in. */
export interface FullAnswer {
  readonly id: string
  readonly model: string
  readonly text: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly usage: { readonly input: number; readonly output: number }
}

/** One request to a model. */
export interface ModelRequest {
  readonly wire: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The exact bytes, as a text. */
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test looks into it as it likes
  readonly body: any
  readonly stream: boolean
  /** Names of the tools, as they were sent. */
  readonly tools: readonly string[]
}

/** A provider's API as it looks on the wire. */
export interface ModelWire {
  readonly name: string
  /** Whether a path, without its query, is this API's. */
  readonly matches: (path: string) => boolean
  /** Returns the parts of a request that tests check. `body` is parsed JSON. */
  readonly read: (
    body: Readonly<Record<string, unknown>>,
    path: string,
  ) => { readonly model: string; readonly stream: boolean; readonly tools: readonly string[] }
  readonly toJson: (answer: FullAnswer) => unknown
  /** The parts of a stream, each as the text of its server-sent event with the empty line after it. */
  readonly toEvents: (answer: FullAnswer) => readonly string[]
  readonly toError: (status: number, message: string) => unknown
}
