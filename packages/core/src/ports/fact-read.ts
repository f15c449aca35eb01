/** Where a value comes from, the worst first. A list or object has the worst origin of its values. */
export const ORIGINS = ['untrusted', 'unknown', 'trusted', 'user'] as const
export type Origin = (typeof ORIGINS)[number]

/** `began`: the call began, however it ended. `called`: the call ended `done` and its result reports no failure. */
export const CALL_EVENTS = ['began', 'called'] as const
export type CallEvent = (typeof CALL_EVENTS)[number]

/** A call of the run that began before. A history keeps the first that raised a label, and one more. */
export interface EarlierCall {
  /** The id of its tool. */
  readonly tool: string
  /** Wall-clock milliseconds. */
  readonly atMs: number
}

/** A value in an input, and where it comes from. */
export interface OriginOfValue {
  /** The field that names it as an addressee. */
  readonly field?: string
  readonly value: unknown
  readonly origin: Origin
}

/** A fact that counted against a call. */
export interface FactRead {
  readonly kind: 'label' | CallEvent | 'origin'
  /** The label; the selector of a call; the expression of a value, such as `input.to`. */
  readonly of: string
  /** The fields of a call that had to be equal. */
  readonly fields?: readonly string[]
  /** The values of those fields, in their order; `undefined` for one that the call did not have. */
  readonly wanted?: readonly unknown[]
  readonly origin?: Origin
  /** Of an origin: the values that have it, the worst first. At most five. */
  readonly values?: readonly OriginOfValue[]
  /** The tools that raised the label, or that the selector names. */
  readonly tools?: readonly string[]
  /** The calls that raised the label, or that matched. */
  readonly calls?: readonly EarlierCall[]
}
