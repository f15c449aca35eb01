import { spend, type Work } from '../work.ts'
import { boolOf, bytesOf, doubleOf, intOf, stringOf, uintOf } from './conversions.ts'
import * as strings from './strings.ts'
import { parseDuration, parseTimestamp, partOfDuration, partOfTimestamp, toTimestamp } from './time.ts'
import { type CelTypeInfo, typeOf } from './types.ts'
import { CelType, type Duration, keysOf, type Kind, kindOf, Timestamp } from './values.ts'

/** An implementation for certain types. It counts the steps of reading its arguments and building its result. */
type RunOverload = (work: Work, ...args: readonly never[]) => unknown

export interface Overload {
  readonly name: string
  /** Whether it is a method: `x.size()`. The receiver is then the first parameter. */
  readonly isMethod: boolean
  readonly params: readonly CelTypeInfo[]
  readonly result: CelTypeInfo
  readonly run: RunOverload
}

/** Returns a function by its signature, such as `string.indexOf(string, int): int`. */
export function overload(signature: string, run: RunOverload): Overload {
  const [, receiver, name = '', params = '', result = ''] =
    /^(?:([\w<>]+)\.)?(\w+)\((.*)\): (.+)$/.exec(signature) ?? []
  const texts = [...(receiver === undefined ? [] : [receiver]), ...params.split(', ').filter((one) => one !== '')]
  return { name, isMethod: receiver !== undefined, params: texts.map(typeOf), result: typeOf(result), run }
}

const SIZES: readonly Overload[] = ['size(X): int', 'X.size(): int'].flatMap((signature) => [
  overload(signature.replace('X', 'string'), (work, text: string) => BigInt(strings.sizeOfText(work, text))),
  overload(signature.replace('X', 'list'), (_work, list: readonly unknown[]) => BigInt(list.length)),
  overload(signature.replace('X', 'bytes'), (_work, bytes: Uint8Array) => BigInt(bytes.length)),
  overload(signature.replace('X', 'map'), (work, map: object) => BigInt(keysOf(work, map).length)),
])

const TEXTS: readonly Overload[] = [
  overload('string.contains(string): bool', strings.contains),
  overload('string.startsWith(string): bool', strings.startsWith),
  overload('string.endsWith(string): bool', strings.endsWith),
  overload('string.charAt(int): string', strings.charAt),
  overload('string.indexOf(string): int', strings.indexOf),
  overload('string.indexOf(string, int): int', strings.indexOf),
  overload('string.lastIndexOf(string): int', strings.lastIndexOf),
  overload('string.lastIndexOf(string, int): int', strings.lastIndexOf),
  overload('string.substring(int): string', strings.substring),
  overload('string.substring(int, int): string', strings.substring),
  overload('string.lowerAscii(): string', strings.lowerAscii),
  overload('string.upperAscii(): string', strings.upperAscii),
  overload('string.trim(): string', strings.trim),
  overload('string.reverse(): string', strings.reverse),
  overload('string.split(string): list<string>', strings.split),
  overload('string.split(string, int): list<string>', strings.split),
  overload('string.replace(string, string): string', strings.replace),
  overload('string.replace(string, string, int): string', strings.replace),
  overload('list<string>.join(): string', strings.join),
  overload('list<string>.join(string): string', strings.join),
]

const of = (from: readonly Kind[], to: string, run: RunOverload) =>
  from.map((kind) => overload(`${to}(${kind}): ${to}`, run))

const CONVERSIONS: readonly Overload[] = [
  ...of(['int', 'uint', 'double', 'string', 'timestamp'], 'int', intOf),
  ...of(['int', 'uint', 'double', 'string'], 'uint', uintOf),
  ...of(['int', 'uint', 'double', 'string'], 'double', doubleOf),
  ...of(['bool', 'string'], 'bool', (_work, value: boolean | string) => boolOf(value)),
  ...of(['bool', 'int', 'uint', 'double', 'string', 'bytes', 'timestamp', 'duration'], 'string', stringOf),
  ...of(['string', 'bytes'], 'bytes', bytesOf),
  ...of(['string', 'int', 'timestamp'], 'timestamp', timestampOf),
  ...of(['string', 'duration'], 'duration', (work, value: string | Duration) =>
    typeof value === 'string' ? parseDuration(work, value) : value,
  ),
  overload('type(dyn): type', (_work, value: unknown) => TYPES.get(TYPE_NAMES[kindOf(value)])),
  overload('dyn(dyn): dyn', (_work, value: unknown) => value),
]

function timestampOf(work: Work, value: string | bigint | Timestamp): Timestamp {
  spend(work, typeof value === 'string' ? TIMESTAMP_STEPS : 8)
  if (typeof value === 'bigint') return toTimestamp(value * 1_000_000_000n)
  return value instanceof Timestamp ? value : parseTimestamp(value)
}

/** Parsing a timestamp with a pattern, dates and big integers takes about a microsecond. */
const TIMESTAMP_STEPS = 200

const TIMES: readonly Overload[] = [
  ...(
    [
      'FullYear',
      'Month',
      'Date',
      'DayOfMonth',
      'DayOfWeek',
      'DayOfYear',
      'Hours',
      'Minutes',
      'Seconds',
      'Milliseconds',
    ] as const
  ).flatMap((part) =>
    ['', 'string'].map((zone) =>
      overload(`timestamp.get${part}(${zone}): int`, (work, at: Timestamp, name?: string) =>
        partOfTimestamp(work, part, at, name),
      ),
    ),
  ),
  ...(['Hours', 'Minutes', 'Seconds', 'Milliseconds'] as const).map((part) =>
    overload(`duration.get${part}(): int`, (_work, span: Duration) => partOfDuration(part, span)),
  ),
]

/** The functions of CEL that conditions can use. */
export const LIBRARY: readonly Overload[] = [...SIZES, ...TEXTS, ...CONVERSIONS, ...TIMES]

const TYPE_NAMES: Readonly<Record<Kind, string>> = {
  null: 'null_type',
  bool: 'bool',
  int: 'int',
  uint: 'uint',
  double: 'double',
  string: 'string',
  bytes: 'bytes',
  list: 'list',
  map: 'map',
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
  type: 'type',
}

/** The names of types, which are values. */
export const TYPES: ReadonlyMap<string, CelType> = new Map(
  Object.values(TYPE_NAMES).map((name) => [name, new CelType(name)] as const),
)
