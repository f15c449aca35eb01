import type { AuditRecord } from '@toolgate/core/audit'

/** A row as SQLite and Postgres return it. */
export type Row = Readonly<Record<string, unknown>>

/** Returns the text in a column. A value of another type means that the table is not ours. */
export function textIn(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new Error(`its column ${column} does not hold a text`)
  return value
}

/** Returns the bytes in a column. */
export function bytesIn(row: Row, column: string): Uint8Array {
  const value = row[column]
  if (!(value instanceof Uint8Array)) throw new Error(`its column ${column} does not hold bytes`)
  return value
}

/** Returns the number in a column. */
export function numberIn(row: Row, column: string): number {
  return Number(row[column])
}

/** Returns the JSON of a field as a record contains it. A quoted field name occurs nowhere else in JSON. */
export function fieldText(name: keyof AuditRecord, value: string): string {
  return `"${name}":${JSON.stringify(value)}`
}
