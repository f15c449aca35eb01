/** Returns the fields of a value that another package or a client made; none of a value that has no fields. */
export function fieldsOf(value: unknown): Readonly<Record<PropertyKey, unknown>> {
  return hasFields(value) ? value : {}
}

function hasFields(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
