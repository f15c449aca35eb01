/** An ECMAScript 2025 function that TypeScript's types lack. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object }

type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown

const LONG_INTEGER = /\d{16}/

const exact: Reviver = (_, value, context) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
    ? BigInt(context?.source ?? '')
    : value

/** Parses JSON. An integer beyond 2^53 becomes a `bigint`, so that people see all its digits. */
export function parseDigits(text: string): unknown {
  return LONG_INTEGER.test(text) ? JSON.parse(text, exact as never) : JSON.parse(text)
}

/** Returns JSON as `JSON.stringify` does. A `bigint` is written as its digits. */
export function writeDigits(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? rawJSON(String(one)) : one), indent)
}
