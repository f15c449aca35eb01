/** Returns the fields of a value that another package or a client made. A value without fields has none. */
export function fieldsOf(value: unknown): Readonly<Record<PropertyKey, unknown>> {
  return hasFields(value) ? value : {}
}

/** Whether a value is an object, a list or a function. */
export function hasFields(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** Whether a value is a function. What it accepts and returns is unknown. */
export function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === 'function'
}

/** Whether a value is a non-empty string. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Whether a function yields its output item by item. The AI SDK checks this before the call. */
export function isAsyncGenerator(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object AsyncGeneratorFunction]'
}

/** Returns a copy of an object with these fields changed. The copy keeps the prototype and all symbol keys. */
export function copyWith<T extends object, Changes extends object>(
  original: T,
  changes: Changes,
): Omit<T, keyof Changes> & Changes {
  return Object.create(Object.getPrototypeOf(original), {
    ...Object.getOwnPropertyDescriptors(original),
    ...descriptorsOf(changes),
  })
}

/** Returns an object that has these fields and inherits the rest from another object, including its private state. */
export function inheritWith<T extends object, Changes extends object>(
  original: T,
  changes: Changes,
): Omit<T, keyof Changes> & Changes {
  return Object.create(original, descriptorsOf(changes))
}

function descriptorsOf(fields: object): PropertyDescriptorMap {
  return Object.getOwnPropertyDescriptors({ ...fields })
}
