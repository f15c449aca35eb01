/** Why a call that was under way was stopped: a person halted it. */
export class HaltedError extends Error {
  override readonly name = 'HaltedError'
}
