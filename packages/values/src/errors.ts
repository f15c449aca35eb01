/**
 * The table of all faults: `code → HTTP status and whether the fault is the caller's`. A refusal is a value (a Decision),
 * so it has no row here; these are faults and misuse.
 */
export const FAULTS = {
  config_invalid: { status: 500, exit: 2 },
  tool_invalid: { status: 500, exit: 2 },
  schema_invalid: { status: 500, exit: 2 },
  tool_duplicate: { status: 500, exit: 2 },
  tool_unknown: { status: 404, exit: 2 },
  app_unknown: { status: 404, exit: 2 },
  source_invalid: { status: 500, exit: 2 },
  filter_invalid: { status: 500, exit: 2 },
  cursor_invalid: { status: 400, exit: 2 },
  cursor_stale: { status: 409, exit: 2 },
  selector_invalid: { status: 500, exit: 2 },
  condition_invalid: { status: 500, exit: 2 },
  caller_invalid: { status: 400, exit: 2 },
  caller_untrusted: { status: 403, exit: 2 },
  approval_unknown: { status: 404, exit: 2 },
  approval_decided: { status: 409, exit: 2 },
  approval_not_revocable: { status: 409, exit: 2 },
  approval_forbidden: { status: 403, exit: 2 },
  approval_needs_other: { status: 403, exit: 2 },
  approval_needs_login: { status: 403, exit: 2 },
  approval_edit_refused: { status: 409, exit: 2 },
  approval_too_many: { status: 429, exit: 2 },
  grant_invalid: { status: 400, exit: 2 },
  grant_forbidden: { status: 403, exit: 2 },
  grant_unknown: { status: 404, exit: 2 },
  grant_ended: { status: 409, exit: 2 },
  grant_too_many: { status: 429, exit: 2 },
  halt_unknown: { status: 404, exit: 2 },
  pin_unknown: { status: 404, exit: 2 },
  resume_refused: { status: 403, exit: 2 },
  resume_unanswered: { status: 409, exit: 2 },
  lock_timeout: { status: 503, exit: 1 },
  lock_lost: { status: 409, exit: 1 },
  state_unavailable: { status: 503, exit: 1 },
  state_invalid: { status: 500, exit: 2 },
  history_full: { status: 503, exit: 1 },
  tool_refused: { status: 403, exit: 1 },
  value_not_canonical: { status: 400, exit: 2 },
  query_invalid: { status: 400, exit: 2 },
  port_taken: { status: 500, exit: 4 },
  audit_closed: { status: 500, exit: 1 },
  audit_unavailable: { status: 503, exit: 1 },
  audit_invalid: { status: 500, exit: 2 },
} as const satisfies Record<string, { status: number; exit: number }>

export type FaultCode = keyof typeof FAULTS

/**
 * A fault or a misuse, with a stable `code`.
 *
 * `message` is safe to show to a caller; `detail` and `cause` are for the log. Frameworks serialise errors for models and
 * clients, so the error's JSON has only its message, and `detail` is not enumerable.
 */
export class ToolgateError extends Error {
  override readonly name: string = 'ToolgateError'
  readonly code: FaultCode
  declare readonly detail: string | undefined

  constructor(code: FaultCode, message: string, options: { detail?: string; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    Object.defineProperty(this, 'detail', { value: options.detail })
  }

  /** Returns an object, because frameworks that rebuild an error from its JSON read its `message`. */
  toJSON(): unknown {
    return { message: this.message }
  }
}

/** An invalid configuration. `path` is the place of the problem, such as `policy[0].deny[1].when`. */
export class ConfigError extends ToolgateError {
  override readonly name = 'ConfigError'
  readonly path: string
  /** The problem, without the path. */
  readonly problem: string
  /** For texts of conditions: the offset in the text at `path`, counted from 0. */
  readonly offset: number | undefined

  constructor(
    path: string,
    problem: string,
    options: { code?: FaultCode; offset?: number | undefined; detail?: string; cause?: unknown } = {},
  ) {
    super(options.code ?? 'config_invalid', path ? `${path}: ${problem}` : problem, options)
    this.path = path
    this.problem = problem
    this.offset = options.offset
  }
}

/** Returns the message of any thrown value. Never throws, so that reporting an error cannot lose it. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'an error without a text'
  }
}

/** Returns the code of a system error, such as `ENOENT`, or `undefined` for any other value. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Returns whether a thrown value is an instance of a class. Never throws, although the value may be anything. */
export function isErrorOf<E extends Error>(error: unknown, kind: new (...args: never[]) => E): error is E {
  try {
    return error instanceof kind
  } catch {
    return false
  }
}

/** An unknown tool name, with the known names nearest to it. */
export interface UnknownTool {
  readonly tool: string
  readonly nearest: readonly string[]
}

/** Tool names that the catalog has never seen. */
export class UnknownToolError extends ToolgateError {
  override readonly name = 'UnknownToolError'
  /** Known names nearest to the first unknown name. */
  readonly nearest: readonly string[]
  /** Every unknown name. */
  readonly unknown: readonly UnknownTool[]

  constructor(tool: string, nearest: readonly string[], others: readonly UnknownTool[] = []) {
    const unknown = [{ tool, nearest }, ...others]
    super('tool_unknown', unknown.map(describeUnknownTool).join(' '))
    this.nearest = nearest
    this.unknown = unknown
  }
}

function describeUnknownTool({ tool, nearest }: UnknownTool): string {
  const hint = nearest.length > 0 ? ` Did you mean ${nearest.map((name) => `"${name}"`).join(', ')}?` : ''
  return `Unknown tool "${tool}".${hint}`
}
