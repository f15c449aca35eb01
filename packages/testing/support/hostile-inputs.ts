import type { JsonSchema, Policies } from '@toolgate/core'

/** A call that tries to keep a gate busy with a tool's schema, a policy, or only an input. */
export interface HostileCall {
  readonly name: string
  /** The schema, chosen by the tool's author, such as an upstream server. */
  readonly inputSchema?: JsonSchema
  /** The operator's policy. */
  readonly policy?: Policies
  /** The operator's own patterns for secrets. */
  readonly redactPatterns?: readonly string[]
  /** The cost of a limit, in CEL. */
  readonly cost?: string
  /** The input fields that contain a recipient of the data. */
  readonly addressees?: readonly string[]
  /** The text of an untrusted output that the run has seen. */
  readonly seen?: string
  /** Returns the caller's input. It is created on demand, because some inputs have megabytes. */
  readonly input: () => Record<string, unknown>
}

/** The bytes of the largest body that the gateway reads, without its envelope. */
const MOST = 3_900_000
/** Half of the values that a request may have, which is also the maximum number of keys. */
const HALF_OF_VALUES = 24_000
const MOST_KEYS = 9_900

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
    name: 'uniqueItems, 49,000 numbers',
    inputSchema: list({ uniqueItems: true }),
    input: () => ({ list: many(49_000, (i) => i) }),
  },
  {
    name: 'uniqueItems, 4,900 objects that differ in the last of nine values',
    inputSchema: list({ uniqueItems: true }),
    input: () => ({ list: many(4_900, (i) => ({ a: [1, 2, 3, 4, 5, 6, 7, i], b: 1 })) }),
  },
  {
    name: 'uniqueItems at each level, 49,000 values',
    inputSchema: {
      $ref: '#/$defs/n',
      $defs: { n: { uniqueItems: true, items: { $ref: '#/$defs/n' }, additionalProperties: { $ref: '#/$defs/n' } } },
    },
    input: () => ({ list: many(5_400, (i) => [[[[[[[i, i + 1]]]]]]]) }),
  },
  {
    name: '500 patternProperties, 9,900 keys',
    inputSchema: { patternProperties: Object.fromEntries(many(500, (i) => [`x${i}`, true])) },
    input: () => record(MOST_KEYS),
  },
  {
    name: 'propertyNames with a pattern, 9,900 keys of 390 characters',
    inputSchema: { propertyNames: { pattern: '^([a-z]+[0-9]*)+$' } },
    input: () => record(MOST_KEYS, 'k'.repeat(385)),
  },
  {
    name: 'a meta-schema, an input of 9,900 schemas',
    inputSchema: { properties: { schema: { $ref: 'https://json-schema.org/draft/2020-12/schema' } } },
    input: () => ({ schema: { properties: Object.fromEntries(many(4_900, (i) => [`p${i}`, { minLength: i }])) } }),
  },
  {
    name: 'the meta-schema of draft 7, a schema of 60 levels',
    inputSchema: { properties: { schema: { $ref: 'http://json-schema.org/draft-07/schema#' } } },
    input: () => ({ schema: many(30, (i) => i).reduce<unknown>((not) => ({ not, allOf: many(50, () => ({})) }), {}) }),
  },
  {
    name: 'maxLength over 3.9 MB',
    inputSchema: text({ maxLength: 5_000_000 }),
    input: () => ({ text: 'é'.repeat(MOST / 2) }),
  },
]

/** Calls without a schema: only the size and the shape of the input are hostile. */
const SHAPES: readonly HostileCall[] = [
  { name: 'a text of 3.9 MB', input: () => ({ text: words(MOST) }) },
  { name: '250,000 keys', input: () => record(250_000) },
  { name: '1,250,000 empty objects', input: () => ({ list: many(1_250_000, () => ({})) }) },
  { name: '9,900 keys', input: () => record(MOST_KEYS) },
  { name: '9,900 keys of 390 characters', input: () => record(MOST_KEYS, 'k'.repeat(385)) },
  { name: '49,000 empty objects', input: () => ({ list: many(49_000, () => ({})) }) },
  { name: '700 values of 60 levels', input: () => ({ list: many(700, () => nested(60)) }) },
  { name: '9,900 keys that name secrets', input: () => record(MOST_KEYS, 'password') },
  { name: '24,000 texts', input: () => ({ list: many(HALF_OF_VALUES, (i) => `token=${words(140)}${i}`) }) },
  { name: '60 levels', input: () => ({ value: nested(60) }) },
  { name: 'one key of 3.9 MB', input: () => ({ [words(MOST)]: 1 }) },
  { name: 'a text of 3.9 MB of password=', input: () => ({ text: 'password=x '.repeat(MOST / 11) }) },
  { name: 'a text of 3.9 MB of quotes', input: () => ({ text: 'token="'.repeat(MOST / 7) }) },
  { name: 'a text of 3.9 MB of backslashes', input: () => ({ text: `password="${'\\'.repeat(MOST)}` }) },
  { name: 'a text of 3.9 MB of URLs', input: () => ({ text: 'https://u:p@h '.repeat(MOST / 14) }) },
  { name: '100,000 keys that name secrets', input: () => record(100_000, 'password') },
]

type Row = readonly [name: string, cel: string, input: HostileCall['input']]

const lists = (): Record<string, unknown> => ({
  list: many(HALF_OF_VALUES, (i) => `item-${i}`),
  same: many(HALF_OF_VALUES, (i) => `item-${i}`),
})
const listAndText = (value: string) => (): Record<string, unknown> => ({ list: lists()['list'], text: value })
const listAndMap = (): Record<string, unknown> => ({ list: lists()['list'], map: record(MOST_KEYS) })
const numbers = (): Record<string, unknown> => ({ list: many(49_000, (i) => i) })
const longText = (): Record<string, unknown> => ({ text: 'abcde'.repeat(MOST / 5) })
/** A path of the greatest length, with as many readings as possible. */
const CODED_PATH = `/${'%C3%A9%2541/'.repeat(340)}`

/** Conditions that, for each item, read another operand of megabytes or as many items again. */
const INSIDE: readonly Row[] = [
  ['f in input.same', 'x in input.same', lists],
  ['a key in input.map', "!((x + '0') in input.map)", listAndMap],
  ['== of lists', 'input.list == input.same', lists],
  ['== of maps', 'input.map == input.map', listAndMap],
  ['size of a list', 'size(input.list) > 0', lists],
  ['size of a map', 'size(input.map) > 0', listAndMap],
  ['size of a text', 'size(input.text) > 0', listAndText(words(MOST / 2))],
  ['+ of lists', 'size(input.list + input.same) > 0', lists],
  ['+ of texts', 'size(input.text + x) > 0', listAndText(words(MOST / 2))],
  ['== of texts', "input.text + x != 'a'", listAndText(words(MOST / 2))],
  ['< of texts', "input.text + x > 'a'", listAndText(words(MOST / 2))],
  ['bytes', "bytes(input.text) != b'a'", listAndText(words(MOST / 2))],
  ['string of bytes', "string(bytes(input.text)) != 'a'", listAndText(words(MOST / 2))],
  ['lowerAscii', "input.text.lowerAscii() != 'a'", listAndText('É'.repeat(MOST / 8))],
  ['split', "input.text.split('').size() > 0", listAndText('a'.repeat(MOST / 2))],
  ['join', 'input.list.join(x) != x', lists],
  ['replace', "input.text.replace('a', x) != x", listAndText('a'.repeat(MOST / 2))],
  ['reverse', 'input.text.reverse() != x', listAndText('a'.repeat(MOST / 2))],
  ['trim', 'input.text.trim() != x', listAndText(' '.repeat(MOST / 2))],
  ['contains', "!input.text.contains(x + 'b')", listAndText('item-'.repeat(MOST / 10))],
  ['indexOf', "input.text.indexOf(x + 'b') == -1", listAndText('item-'.repeat(MOST / 10))],
  ['like', "!like(input.text, '*' + x + '*b')", listAndText('item-'.repeat(MOST / 10))],
  ['like of each', "!like(x, '*a*b*c')", () => ({ list: many(HALF_OF_VALUES, () => 'ab'.repeat(75)) })],
  ['within of a coded path', "within(input.text, '/etc') || true", listAndText(CODED_PATH)],
  ['within of a plain path', "!within(input.text, '/a')", listAndText(`/${'a/../'.repeat(800)}`)],
  ['within of URIs', "within(input.text, 'https://h/a') || true", listAndText(`https://h${CODED_PATH.slice(0, 4000)}`)],
  ['within of each', "within(x, '/etc') || true", () => ({ list: many(900, () => CODED_PATH) })],
  ['host', "host(input.text) != 'a'", listAndText(`https://${'a.'.repeat(120)}b/${'a'.repeat(MOST / 2)}`)],
  ['host of each', "host('https://' + x + '.example/') != 'a'", lists],
  [
    'host of names that are coded',
    "host(x) != 'a'",
    () => ({ list: many(HALF_OF_VALUES, (i) => `https://é${i}.example/`) }),
  ],
  ['int of digits', 'int(input.text) == 1', listAndText('0'.repeat(MOST / 2).concat('1'))],
  ['double of digits', 'double(input.text) > 0.0', listAndText('1'.repeat(300))],
  ['duration', "duration(input.text) > duration('1s')", listAndText('1s'.repeat(2000))],
  ['duration of each', "duration(x) > duration('1s')", () => ({ list: many(HALF_OF_VALUES, () => '1h1m1s1ms') })],
  [
    'timestamp',
    "timestamp(x) < timestamp('2026-01-01T00:00:00Z')",
    () => ({ list: many(HALF_OF_VALUES, () => '2025-01-01T00:00:00.123Z') }),
  ],
  [
    'a part of a timestamp',
    "timestamp(x).getFullYear('+01:00') > 0",
    () => ({ list: many(HALF_OF_VALUES, () => '2025-01-01T00:00:00Z') }),
  ],
  [
    'a time zone',
    "timestamp(x).getHours('Europe/Berlin') >= 0",
    () => ({ list: many(HALF_OF_VALUES, () => '2025-01-01T00:00:00Z') }),
  ],
  ['literals', '[x, x, x, x, x, x, x, x].size() == 8', lists],
  ['string of numbers', "string(x) != 'a'", numbers],
]

/** Conditions that read a whole body at once. */
const OUTSIDE: readonly Row[] = [
  ['duration of 4,000 digits', "duration(input.text) > duration('1s')", () => ({ text: '1'.repeat(4000) })],
  ['duration of 4,000 characters', "duration(input.text) > duration('1s')", () => ({ text: '1h1m'.repeat(1000) })],
  ['duration of 3.9 MB', "duration(input.text) > duration('1s')", () => ({ text: '1'.repeat(MOST) })],
  [
    'timestamp of 3.9 MB',
    "timestamp(input.text) > timestamp('2026-01-01T00:00:00Z')",
    () => ({ text: '2'.repeat(MOST) }),
  ],
  ['int of 3.9 MB', 'int(input.text) == 1', () => ({ text: '1'.repeat(MOST) })],
  ['double of 3.9 MB', 'double(input.text) == 1.0', () => ({ text: '1'.repeat(MOST) })],
  ['bytes of 3.9 MB', "bytes(input.text) == b'a'", () => ({ text: 'é'.repeat(MOST / 2) })],
  ['lowerAscii of 3.9 MB', "input.text.lowerAscii() == 'a'", () => ({ text: 'É'.repeat(MOST / 2) })],
  ['split of 3.9 MB', "input.text.split('').size() == 1", longText],
  ['replace that grows 3.9 MB', "input.text.replace('a', input.text).size() == 1", longText],
  ['replace of nothing', "input.text.replace('', 'cccccccc').size() == 1", longText],
  ['reverse of 3.9 MB', "input.text.reverse() == 'a'", () => ({ text: 'é'.repeat(MOST / 2) })],
  ['trim of 3.9 MB', "input.text.trim() == 'a'", () => ({ text: `${' '.repeat(MOST)}x` })],
  ['size of 3.9 MB of code points', 'size(input.text) == 1', () => ({ text: '😀'.repeat(MOST / 4) })],
  [
    'contains whose parts repeat',
    'input.text.contains(input.wanted)',
    () => ({ text: 'a'.repeat(MOST / 2), wanted: `${'a'.repeat(MOST / 4)}b` }),
  ],
  [
    'lastIndexOf whose parts repeat',
    'input.text.lastIndexOf(input.wanted) == 1',
    () => ({ text: 'a'.repeat(MOST / 2), wanted: `b${'a'.repeat(MOST / 4)}` }),
  ],
  [
    'like with a pattern of the caller',
    'like(input.text, input.wanted)',
    () => ({ text: 'ab'.repeat(MOST / 4), wanted: '*a*b'.repeat(MOST / 8) }),
  ],
  ['within with a root of the caller', "within('/a', '/' + input.text)", longText],
  ['within of a coded path', "within(input.text, '/etc')", () => ({ text: CODED_PATH })],
  ['host of 3.9 MB', "host(input.text) == 'a'", () => ({ text: `https://${'é.'.repeat(MOST / 3)}` })],
  ['host with a long query', "host(input.text) == 'a'", () => ({ text: `https://h/?${'é'.repeat(MOST / 3)}` })],
  ['+ that doubles', `size(${many(9, () => 'input.text').join(' + ')}) == 1`, longText],
  ['== of 9,900 keys', 'input.map == input.map2', () => ({ map: record(4_900), map2: record(4_900) })],
  [
    '== of nested lists',
    'input.value == input.value2',
    () => ({ value: many(350, () => nested(60)), value2: many(350, () => nested(60)) }),
  ],
  ['filter and map', 'input.list.filter(x, x > 1).map(x, [x, x]).size() == 1', numbers],
  ['map to maps', "input.list.map(x, {'a': x, 'b': x}).size() == 1", numbers],
  ['hundred clauses of in', many(100, (i) => `'a${i}' in input.list`).join(' || '), lists],
]

/** Conditions of a well-meaning operator, with hostile inputs. */
const CONDITIONS: readonly HostileCall[] = [
  ...([
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
  ] satisfies Row[]),
  ...OUTSIDE,
  ...INSIDE.map(([name, cel, input]): Row => [`${name}, in a macro`, `input.list.all(x, ${cel})`, input]),
].map(([name, cel, input]) => ({ name, policy: { deny: [{ match: '*', input: cel }] }, input }))

/** Costs of limits, computed from the caller's input. */
const COSTS: readonly HostileCall[] = [
  ['size of a text', 'size(input.text)', longText],
  ['a macro with in', 'input.list.filter(x, x in input.same).size()', lists],
  ['int of digits', 'int(input.text)', () => ({ text: '1'.repeat(MOST) })],
  ['split', "input.text.split('a').size()", longText],
].map(([name, cost, input]) => ({ name: name as string, cost: cost as string, input: input as HostileCall['input'] }))

/** A text that still fits in an index, with the characters of the requested addresses. */
const SEEN = many(2_500, (i) => `person${i * 7919}@example${i % 97}.com https://site${i}.example/é`)
  .join('\n')
  .slice(0, 100_000)
const labels = (count: number): string => many(count, (i) => `a${i % 10}`).join('.')

/** Inputs with recipients, for rules about who named them. */
const ORIGINS: readonly HostileCall[] = Object.entries<HostileCall['input']>({
  'a host of 8,000 labels': () => ({ to: `https://${labels(8000)}.example/` }),
  'a host of 120 labels': () => ({ to: `https://${labels(80)}.example/` }),
  '120 hosts of 60 labels': () => ({ to: many(120, (i) => `https://${labels(40)}.e${i}.com/`) }),
  '1,000 addresses': () => ({ to: many(999, (i) => `p${i}@e${i}.org`) }),
  '1,000 addresses in one text': () => ({ to: many(1000, (i) => `p${i}@e${i}.org`).join(', ') }),
  'addresses of other letters': () => ({ to: many(900, (i) => `é${i}@ß${i}.org`) }),
  '9,900 keys of objects': () => ({ to: record(MOST_KEYS, 'p@e.org') }),
  '900 keys of objects': () => ({ to: record(900, 'p@e.org') }),
  '400 IBANs': () => ({ to: many(400, (i) => `DE89 3704 0044 0532 0${String(i).padStart(3, '0')} 00`) }),
  'one text of IBANs': () => ({ to: many(600, (i) => `DE89370400440532${String(i).padStart(6, '0')}`).join(' ') }),
  'a text of 16,000 digits': () => ({ to: '1'.repeat(16_000) }),
  'a text of 16,000 @': () => ({ to: '@'.repeat(16_000) }),
  'a text of 16,000 dots': () => ({ to: 'a.'.repeat(8_000) }),
  'a text of %25': () => ({ to: `https://h/${'%25'.repeat(5_000)}` }),
  'a text of 3.9 MB': () => ({ to: words(MOST) }),
  '49,000 numbers': () => ({ to: many(49_000, (i) => i) }),
  '40,000 empty texts': () => ({ to: many(40_000, () => '') }),
  '60 levels': () => ({ to: many(700, () => nested(60)) }),
}).map(([name, input]) => ({
  name,
  addressees: ['to'],
  seen: SEEN,
  policy: { deny: [{ match: 'tool', input: "!(origin(addressees) in ['user', 'trusted'])" }] },
  input,
}))

/** Calls that need an approval: the input is masked, shown and stored. */
const APPROVALS: readonly HostileCall[] = Object.entries<HostileCall['input']>({
  'a text of 3.9 MB': () => ({ text: words(MOST) }),
  'a text of 650,000 unicode escapes': () => ({ text: '\u0001'.repeat(MOST / 6) }),
  '9,900 keys': () => record(MOST_KEYS),
  '9,900 keys that name secrets': () => record(MOST_KEYS, 'password'),
  '49,000 numbers': numbers,
  '700 values of 60 levels': () => ({ list: many(700, () => nested(60)) }),
  'a text of 3.9 MB of URLs': () => ({ text: 'https://u:p@h '.repeat(MOST / 14) }),
  '24,000 texts': () => ({ list: many(HALF_OF_VALUES, (i) => `password=${'x'.repeat(100)}${i}`) }),
})
  .map(([name, input]): HostileCall => ({ name, policy: { ask: ['tool'] }, input }))
  .concat({
    name: 'a text of 3.9 MB, asked about by ten rules',
    policy: { ask: many(10, (i) => ({ match: 'tool', input: `input.n != ${i}` })) },
    input: () => ({ n: 10, text: words(MOST) }),
  })

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
    name: '20 redaction patterns over 9,900 keys',
    redactPatterns: many(20, (i) => `INT-${i}[0-9]{4}`),
    input: () => record(MOST_KEYS),
  },
  {
    name: '20 redaction patterns over 24,000 texts',
    redactPatterns: many(20, (i) => `INT-${i}[0-9]{4}`),
    input: () => ({ list: many(HALF_OF_VALUES, (i) => `INT-${i}`) }),
  },
  {
    name: '20 redaction patterns over 100,000 keys',
    redactPatterns: many(20, (i) => `INT-${i}[0-9]{4}`),
    input: () => record(100_000),
  },
]

/** The calls that bench/hostile.ts makes through a gate, by who chose the hostile part. */
export const HOSTILE_CALLS: Readonly<
  Record<'schemas' | 'shapes' | 'conditions' | 'costs' | 'origins' | 'approvals' | 'redaction', readonly HostileCall[]>
> = {
  schemas: SCHEMAS,
  shapes: SHAPES,
  conditions: CONDITIONS,
  costs: COSTS,
  origins: ORIGINS,
  approvals: APPROVALS,
  redaction: REDACTION,
}
