/** The table of exit codes. A test compares it with `docs/guide/cli.md`. */
export const EXITS = {
  ok: { code: 0, means: 'Success. If the command asks a question, the answer is yes.' },
  no: {
    code: 1,
    means:
      'The answer is no (`why`: the tool is not visible, or the call would be refused; `needs`: something is not available; `call`: it is refused or fails; `check`: a server waits for a variable or a file; `doctor`: something is wrong; `test`: a test fails; `compare`: it may grant more), or the command failed.',
  },
  usage: { code: 2, means: 'The command line, the configuration or a name in them cannot be used.' },
  unreachable: { code: 3, means: 'No gateway answers at that address.' },
  port: { code: 4, means: 'The port is not available.' },
  key: { code: 5, means: 'The gateway refuses the key; `audit open`: another key has sealed the input.' },
  tampered: {
    code: 6,
    means: '`audit verify`: records, checkpoints or sealed inputs have been changed; `audit open`: the input was.',
  },
  torn: {
    code: 7,
    means: '`audit verify`: the last line is incomplete, as after a crash. All other records are valid.',
  },
  gap: {
    code: 8,
    means:
      '`audit verify`: records or sealed inputs are missing. The others are valid. `what-if`, `suggest`: records are missing, and the answer is without them.',
  },
  unsigned: {
    code: 9,
    means: '`audit verify`: checkpoints that the configuration or the audit names are missing.',
  },
  forced: { code: 130, means: 'A second Ctrl-C (or SIGTERM) ended it before it had stopped.' },
} as const satisfies Record<string, { code: number; means: string }>

export type ExitName = keyof typeof EXITS

/** Ends the command with a message on stderr and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exit: ExitName
  /** What the user can do, on separate lines. */
  readonly hint: string | undefined
  /** A code for programs, if it is more specific than the exit code. */
  readonly code: string | undefined

  constructor(exit: ExitName, message: string, options: { hint?: string; code?: string; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.exit = exit
    this.hint = options.hint
    this.code = options.code
  }
}
