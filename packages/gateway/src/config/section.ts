import type * as z from 'zod'
import { checkShape, has, type Reading } from './reading.ts'

/** A section of the file: one key of its root. */
export interface Section<Value> {
  /** The shape of the section as people write it. The published JSON Schema has its description. */
  readonly schema: z.ZodType
  /** Whether a file must have the section. `read` reports its absence. */
  readonly isRequired?: boolean
  /**
   * Reads the section under its key, and reports its problems. Returns `undefined` if the configuration has no such value.
   * Sections are read in the order of their table.
   */
  read(reading: Reading, key: string): Value | undefined
}

/** A section that needs no conversion. */
export function plain<T extends z.ZodType>(schema: T): Section<z.infer<T>> {
  return {
    schema,
    read: ({ source }, key) => (has(source, [key]) ? checkShape(source, [key], schema) : undefined),
  }
}

/**
 * A section with defaults, which `convert` fills in. An absent section is read as `empty`. So is an invalid one, after its
 * problems are reported.
 */
export function withDefaults<T extends z.ZodType>(
  schema: z.ZodType,
  convert: (reading: Reading) => T,
  empty: readonly never[] | object = {},
): Section<z.infer<T>> {
  return {
    schema,
    read(reading, key) {
      const { source } = reading
      const converted = convert(reading)
      return (has(source, [key]) ? checkShape(source, [key], converted) : undefined) ?? converted.parse(empty)
    },
  }
}
