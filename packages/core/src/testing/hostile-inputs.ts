import type { Policies } from '../policy/policy.ts'
import type { JsonSchema } from '../tools/tool.ts'

/** A call that tries to keep a gate busy: a tool's schema, a policy, or only the input. */
export interface HostileCall {
  readonly name: string
  /** What the tool's author, such as an upstream server, chose. */
  readonly inputSchema?: JsonSchema
  /** What the operator wrote. */
  readonly policy?: Policies
  /** The operator's own patterns for secrets. */
  readonly redactPatterns?: readonly string[]
  /** What the caller sends. Made when asked for: some have megabytes. */
  readonly input: () => Record<string, unknown>
}

/** The largest body that the gateway reads, less its frame. */
const MOST = 3_900_000

const text = (schema: JsonSchema): JsonSchema => ({ properties: { text: { type: 'string', ...schema } } })
const list = (schema: JsonSchema): JsonSchema => ({ properties: { list: { type: 'array', ...schema } } })
const pattern = (source: string): JsonSchema => text({ pattern: source })
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const record = (count: number, prefix = 'k'): Record<string, number> =>
  Object.fromEntries(many(count, (i) => [`${prefix}${i}`, i]))
const nested = (levels: number): unknown => many(levels, (i) => i).reduce<unknown>((inner) => [inner], 0)
const words = (length: number): string => 'the quick brown fox jumps over it. '.repeat(length / 35)

/** Schemas of a hostile or careless upstream, with inputs that cost the most. */
const SCHEMAS: readonly HostileCall[] = [
  {
    name: 'pattern [0-9a-f]{40} over 400 kB',
    inputSchema: pattern('[0-9a-f]{40}'),
    input: () => ({ text: 'abcdef0123456789'.repeat(2).padEnd(39, 'a').concat('x').repeat(10_000) }),
  },
  {
    name: 'pattern with an unanchored bounded repeat over 400 kB',
    inputSchema: pattern('[ab]{0,500}c'),
    input: () => ({ text: 'ab'.repeat(200_000) }),
  },
  {
    name: 'pattern with an unanchored bounded repeat over 3.9 MB',
    inputSchema: pattern('[ab]{0,500}c'),
    input: () => ({ text: 'ab'.repeat(MOST / 2) }),
  },
  {
    name: 'pattern whose automaton has 2^500 states',
    inputSchema: pattern('a[ab]{500}c'),
    input: () => ({ text: many(MOST, (i) => 'ab'[(i * 7919 + (i >> 3)) & 1]).join('') }),
  },
  {
    name: 'pattern ^(a+)+$ over 3.9 MB',
    inputSchema: pattern('^(a+)+$'),
    input: () => ({ text: `${'a'.repeat(MOST)}b` }),
  },
  {
    name: 'pattern of nested repeats, (((a{9}){9}){9}){9}',
    inputSchema: pattern('(((a{9}){9}){9}){9}b'),
    input: () => ({ text: 'a'.repeat(MOST) }),
  },
  {
    name: '500 patterns over 3.9 MB',
    inputSchema: text({ allOf: many(500, (i) => ({ pattern: `x${i}y` })).map((not) => ({ not })) }),
    input: () => ({ text: 'x1'.repeat(MOST / 2) }),
  },
  {
    name: 'pattern of many classes over 3.9 MB of code points',
    inputSchema: pattern('(\\p{L}\\p{N}?|\\p{Lu}\\p{P}*)+$'),
    input: () => ({ text: 'é'.repeat(MOST / 2) }),
  },
  {
    name: 'uniqueItems, 300,000 numbers',
    inputSchema: list({ uniqueItems: true }),
    input: () => ({ list: many(300_000, (i) => i) }),
  },
  {
    name: 'uniqueItems, 30,000 objects',
    inputSchema: list({ uniqueItems: true }),
    input: () => ({ list: many(30_000, (i) => ({ a: i, b: [i, { c: 'text' }] })) }),
  },
  {
    name: 'uniqueItems at each of 20 levels',
    inputSchema: {
      $ref: '#/$defs/n',
      $defs: { n: { uniqueItems: true, items: { $ref: '#/$defs/n' }, additionalProperties: { $ref: '#/$defs/n' } } },
    },
    input: () => ({ list: many(30_000, (i) => [[[[[[[i, i + 1]]]]]]]) }),
  },
  {
    name: '500 patternProperties, 100,000 keys',
    inputSchema: { patternProperties: Object.fromEntries(many(500, (i) => [`x${i}`, true])) },
    input: () => record(100_000),
  },
  {
    name: 'propertyNames with a pattern, 200,000 keys',
    inputSchema: { propertyNames: { pattern: '^[a-z]+[0-9]+$' } },
    input: () => record(200_000),
  },
  {
    name: 'enum of 4,000 objects, 100,000 items',
    inputSchema: list({ items: { enum: many(4000, (i) => ({ a: i })) } }),
    input: () => ({ list: many(100_000, () => ({ a: 3999 })) }),
  },
  {
    name: 'const of 60 kB, 60 items as large',
    inputSchema: list({ items: { const: words(60_000) } }),
    input: () => ({ list: many(60, () => words(60_000)) }),
  },
  {
    name: 'contains with 500 alternatives, 500,000 items',
    inputSchema: list({ contains: { anyOf: many(500, (i) => ({ const: `x${i}` })) } }),
    input: () => ({ list: many(500_000, (i) => i) }),
  },
  {
    name: 'allOf of 3,000 types, 500,000 items',
    inputSchema: list({ items: { allOf: many(3000, () => ({ type: 'number' })) } }),
    input: () => ({ list: many(500_000, (i) => i) }),
  },
  {
    name: 'references that double at each of 60 levels',
    inputSchema: {
      $ref: '#/$defs/d0',
      $defs: {
        ...Object.fromEntries(
          many(60, (i) => [`d${i}`, { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }]),
        ),
        d60: {},
      },
    },
    input: () => ({}),
  },
  {
    name: 'unevaluatedProperties over 200 branches, 20,000 keys',
    inputSchema: { anyOf: many(200, () => ({ patternProperties: { '^k': true } })), unevaluatedProperties: false },
    input: () => record(20_000),
  },
  {
    name: 'required and dependentRequired of 4,000 names',
    inputSchema: { required: many(4000, (i) => `k${i}`), properties: { list: { items: { required: ['a'] } } } },
    input: () => record(250_000),
  },
  {
    name: 'maxLength over 3.9 MB',
    inputSchema: text({ maxLength: 5_000_000 }),
    input: () => ({ text: 'é'.repeat(MOST / 2) }),
  },
]

/** No schema: only the size and the shape of what is sent. */
const SHAPES: readonly HostileCall[] = [
  { name: 'a text of 3.9 MB', input: () => ({ text: words(MOST) }) },
  { name: '250,000 keys', input: () => record(250_000) },
  { name: '1,250,000 empty objects', input: () => ({ list: many(1_250_000, () => ({})) }) },
  { name: '60 levels', input: () => ({ value: nested(60) }) },
  { name: 'one key of 3.9 MB', input: () => ({ [words(MOST)]: 1 }) },
  { name: 'a text of 3.9 MB of password=', input: () => ({ text: 'password=x '.repeat(MOST / 11) }) },
  { name: 'a text of 3.9 MB of quotes', input: () => ({ text: 'token="'.repeat(MOST / 7) }) },
  { name: 'a text of 3.9 MB of backslashes', input: () => ({ text: `password="${'\\'.repeat(MOST)}` }) },
  { name: 'a text of 3.9 MB of URLs', input: () => ({ text: 'https://u:p@h '.repeat(MOST / 14) }) },
  { name: '100,000 keys that name secrets', input: () => record(100_000, 'password') },
]

/** Conditions of an operator who means well, asked about hostile inputs. */
const CONDITIONS: readonly HostileCall[] = [
  ['like() over 3.9 MB', "like(input.text, '*a*b*c*d*e*f')", () => ({ text: 'abcde'.repeat(MOST / 5) })],
  [
    'like() whose parts repeat, over 3.9 MB',
    `like(input.text, '*${'a'.repeat(2000)}b*')`,
    () => ({ text: 'a'.repeat(MOST) }),
  ],
  ['within() over 3.9 MB', "within(input.text, '/workspace')", () => ({ text: 'a/../'.repeat(MOST / 5) })],
  ['host() over 3.9 MB', "host(input.text) == 'a'", () => ({ text: `https://${'a.'.repeat(MOST / 2)}` })],
  ['a macro over 500,000 items', "input.list.exists(x, x == 'a')", () => ({ list: many(500_000, (i) => i) })],
  [
    'a macro with like() over 100,000 items',
    "input.list.all(x, like(x, '*a*b'))",
    () => ({ list: many(100_000, () => 'aaaaaaaaaaaaaaaaaaaaaaaab') }),
  ],
  ['in over 1,000,000 items', "'a' in input.list", () => ({ list: many(1_000_000, (i) => i % 10) })],
  [
    'ten macros after each other',
    many(10, (i) => `input.list.exists(x, x == 'a${i}')`).join(' || '),
    () => ({ list: many(500_000, (i) => i) }),
  ],
].map(([name, input, make]) => ({
  name: name as string,
  policy: { deny: [{ match: '*', input: input as string }] },
  input: make as HostileCall['input'],
}))

/** The operator's own patterns for secrets. */
const REDACTION: readonly HostileCall[] = [
  {
    name: 'a redaction pattern with a bounded repeat over 3.9 MB',
    redactPatterns: ['[ab]{20,500}c'],
    input: () => ({ text: 'ab'.repeat(MOST / 2) }),
  },
  {
    name: 'a redaction pattern that is everywhere',
    redactPatterns: ['a'],
    input: () => ({ text: 'ab'.repeat(MOST / 2) }),
  },
  {
    name: '20 redaction patterns over 100,000 keys',
    redactPatterns: many(20, (i) => `INT-${i}[0-9]{4}`),
    input: () => record(100_000),
  },
]

/** What bench/hostile.ts runs through a gate, by who chose the hostile part. */
export const HOSTILE_CALLS: Readonly<
  Record<'schemas' | 'shapes' | 'conditions' | 'redaction', readonly HostileCall[]>
> = {
  schemas: SCHEMAS,
  shapes: SHAPES,
  conditions: CONDITIONS,
  redaction: REDACTION,
}
