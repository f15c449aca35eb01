/** The one table of exit codes; `docs/guide/cli.md` repeats it, and a test compares the two. */
export const EXITS = {
  ok: { code: 0, means: 'It worked, and where the command asks a question, the answer is yes.' },
  no: {
    code: 1,
    means:
      'The answer is no (`why`: the tool is not visible; `needs`: something is not available; `halt`: it names nothing now), or the work failed on the way.',
  },
  usage: { code: 2, means: 'The command line, the configuration or a name in them cannot be used.' },
  unreachable: { code: 3, means: 'No gateway answers at that address.' },
  port: { code: 4, means: 'The port cannot be had.' },
  key: { code: 5, means: 'The gateway refuses the key.' },
  tampered: { code: 6, means: '`audit verify`: records or checkpoints are not those that were written.' },
  torn: {
    code: 7,
    means: '`audit verify`: the last line is half a record, as a crash leaves it; all others are right.',
  },
  gap: { code: 8, means: '`audit verify`: records are missing; those that are there are right.' },
  unsigned: {
    code: 9,
    means: '`audit verify`: the checkpoints that the audit was configured with, or that it says it has, are missing.',
  },
  forced: { code: 130, means: 'A second Ctrl-C (or SIGTERM) ended it before it had stopped by itself.' },
} as const satisfies Record<string, { code: number; means: string }>

export type ExitName = keyof typeof EXITS

/** Ends the command with a message on stderr and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exit: ExitName
  /** What to do about it, on lines of its own. */
  readonly hint: string | undefined
  /** For programs, where it says more than the exit code. */
  readonly code: string | undefined

  constructor(exit: ExitName, message: string, options: { hint?: string; code?: string; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.exit = exit
    this.hint = options.hint
    this.code = options.code
  }
}
