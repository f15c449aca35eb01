import * as z from 'zod'

export function whole(min: number, max: number, what: string) {
  const expected = `a number of ${what} from ${min} to ${max}`
  return z.int().min(min, expected).max(max, expected)
}

/** A name that is part of tool ids, and of their names on the wire: `namespace__tool`. */
export const name = z
  .string()
  .regex(/^(?!.*__)[a-z0-9](?:[a-z0-9_-]*[a-z0-9-])?$/, 'lower-case letters, digits, "-" and single "_" between them')
  .max(64, 'at most 64 characters')

export const text = z.string().min(1, 'text that is not empty')
export const texts = z.array(text)
export const timeoutMs = z
  .int()
  .min(1, 'a number of milliseconds from 1 to 86400000')
  .max(86_400_000, 'a number of milliseconds from 1 to 86400000')

export const variableName = z.string().regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable')
export const headersSchema = z.record(
  z.string().regex(/^[!#$%&'*+.^`|~\w-]+$/, 'the name of an HTTP header'),
  z.string().regex(/^[\t\u0020-\u007e\u0080-\u00ff]*$/, 'the value of an HTTP header, on one line'),
)

export const SPAN = /^[1-9]\d{0,4}[hd]$/
export const SPAN_HELP = 'a time such as "90d" or "36h"'

/** The output type of a schema, as an immutable value. */
export type Written<S extends z.ZodType> = Unchanged<z.infer<S>>
type Unchanged<T> = T extends object ? { readonly [K in keyof T]: Unchanged<T[K]> } : T
