import { isObject, type JsonObject } from '@toolgate/values/json'
import type { ProposedCompare } from './propose-compare.ts'
import {
  ADDRESSEE_FORMATS,
  ADDRESSEE_NAME,
  ADDRESSEE_TEXT,
  EFFECTS,
  type ToolEffect,
  effectOfVerb,
  IDENTITY_WORDS,
  NO_ADDRESSEE,
  OWN_WORDS,
  PLACE_NAME,
} from './words.ts'

/** A tool as its server lists it, with the operator's labels so far. */
export interface ProposedTool {
  readonly server: string
  readonly name: string
  readonly description: string
  readonly inputSchema: unknown
  readonly annotations?: unknown
  readonly tags?: readonly string[]
  readonly addressees?: readonly string[]
  readonly trusted?: boolean
}

export interface LabelProposal {
  readonly server: string
  readonly name: string
  /** The effects of the tool. Absent if a person must decide, because nothing indicates them. */
  readonly effects?: readonly ToolEffect[]
  /** Input fields that name a recipient. */
  readonly addressees: readonly string[]
  /** Whether a person may mark its output as trusted. Only a person knows whether others can write it. */
  readonly mayBeTrusted: boolean
  /** The reading tool for comparisons. */
  readonly compare?: ProposedCompare
  /** Whether the operator's tags already name an effect. */
  readonly isLabelled: boolean
  readonly why: string
}

/**
 * Proposes the labels of a tool for rules about runs, from its name, schema, description and annotations.
 *
 * A server chooses all of these, so a person reviews the proposal: nothing is applied. In doubt a tool counts as
 * sending, and its output as untrusted.
 */
export function proposeLabels(tool: ProposedTool): LabelProposal {
  const { server, name, tags = [], trusted = false } = tool
  const words = wordsOf(name)
  const { verb, why } = verbOf(tool, words)
  const fields = fieldsOf(tool.inputSchema)
  const addressees = verb === 'reads' ? fields.filter(isPlace) : fields.filter(isAddressee)
  const effects = verb && effectsOf(verb, words.join(' '), fields, addressees.length > 0)
  return {
    server,
    name,
    ...(effects && { effects }),
    addressees: effects?.includes('egress') ? addressees.map((field) => field.name) : [],
    mayBeTrusted: trusted || (effects?.length === 1 && effects[0] === 'reads' && OWN_WORDS.test(words.join(' '))),
    isLabelled: trusted || tags.some((tag) => LABEL_TAGS.has(tag)) || (tool.addressees?.length ?? 0) > 0,
    why,
  }
}

const LABEL_TAGS: ReadonlySet<string> = new Set([
  'egress',
  'destructive',
  'identity',
  'commits',
  'writes',
  'reads',
  'read',
])

/** Returns the words of a name. `createUser`, `create_user` and `create-user` have the same words. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '')
}

type Verb = Exclude<ToolEffect, 'identity'>

function verbOf({ description, annotations }: ProposedTool, words: readonly string[]): { verb?: Verb; why: string } {
  const named = words.filter(
    (word, i) => effectOfVerb(word) !== undefined && (i === firstVerb(words) || ALSO.test(words[i - 1] ?? '')),
  )
  const word = named.toSorted((a, b) => strictness(a) - strictness(b))[0]
  const ofName = word === undefined ? undefined : effectOfVerb(word)
  if (ofName) return { verb: ofName, why: `its name: "${word}"` }
  const [first = ''] = /[A-Za-z]+/.exec(description) ?? []
  const verb = effectOfVerb(first)
  if (verb) return { verb, why: `its description: "${first}"` }
  const hints = isObject(annotations) ? annotations : {}
  if (hints['readOnlyHint'] === true) return { verb: 'reads', why: 'its server says that it only reads' }
  if (hints['destructiveHint'] === true) return { verb: 'destructive', why: 'its server says that it destroys' }
  return { why: 'neither its name nor its description says what it does' }
}

/** Words that join two verbs: `get_or_create` creates. */
const ALSO = /^(?:and|or)$/

function firstVerb(words: readonly string[]): number {
  return words.findIndex((word) => effectOfVerb(word) !== undefined)
}

function strictness(word: string): number {
  return EFFECTS.indexOf(effectOfVerb(word) ?? 'reads')
}

function effectsOf(
  verb: Verb,
  name: string,
  fields: readonly FieldText[],
  hasAddressee: boolean,
): readonly ToolEffect[] {
  if (verb === 'reads') return hasAddressee ? ['egress'] : ['reads']
  const effects: ToolEffect[] = []
  if (verb === 'egress' || hasAddressee) effects.push('egress')
  if (verb === 'destructive' || verb === 'commits') effects.push(verb)
  if (IDENTITY_WORDS.test(name) || fields.some((field) => IDENTITY_FIELD.test(field.words))) effects.push('identity')
  return effects.length > 0 ? effects : ['writes']
}

/** Fields that change an identity. A permission next to a recipient is a part of sharing. */
const IDENTITY_FIELD = /^(?:.* )?(?:password|credentials?|secret|api key|access token|otp)$/

interface FieldText {
  readonly name: string
  /** The name as words, in lower case. */
  readonly words: string
  readonly schema: JsonObject
}

/** Returns the fields of an input. The fields of nested objects have names with dots, such as `to.email`. */
function fieldsOf(schema: unknown, prefix = '', depth = 0): readonly FieldText[] {
  if (!isObject(schema) || !isObject(schema['properties']) || depth > 3) return []
  return Object.entries(schema['properties']).flatMap(([key, value]) => {
    const own = isObject(value) ? value : {}
    const name = prefix + key
    const items = isObject(own['items']) ? own['items'] : own
    return [{ name, words: wordsOf(key).join(' '), schema: own }, ...fieldsOf(items, `${name}.`, depth + 1)]
  })
}

function isAddressee(field: FieldText): boolean {
  if (NO_ADDRESSEE.test(field.words) || !isText(field.schema)) return false
  if (ADDRESSEE_NAME.test(field.words) || hasFormat(field.schema)) return true
  const { description } = field.schema
  return (
    typeof description === 'string' &&
    /^(?:id|ids|.* ids?)$/.test(field.words) === false &&
    ADDRESSEE_TEXT.test(description) &&
    !LONG_TEXT.test(field.words)
  )
}

/** Names of long texts, whose description may well contain "of the email". */
const LONG_TEXT =
  /^(?:.* )?(?:subject|body|content|text|message|title|description|note|comment|query|date|time|attachments?)$/

function isPlace(field: FieldText): boolean {
  return isText(field.schema) && (PLACE_NAME.test(field.words) || hasFormat(field.schema))
}

function hasFormat({ format, items }: JsonObject): boolean {
  return ADDRESSEE_FORMATS.has(format) || (isObject(items) && ADDRESSEE_FORMATS.has(items['format']))
}

/**
 * Whether a schema accepts a text. Numbers, booleans and objects are not addresses; a schema without a type accepts
 * anything.
 */
function isText(schema: JsonObject): boolean {
  const types = typesOf(schema)
  return types.size === 0 || types.has('string') || types.has('array')
}

function typesOf({ type, anyOf }: JsonObject): ReadonlySet<unknown> {
  const alternatives = Array.isArray(anyOf) ? anyOf.filter(isObject).flatMap((each) => [...typesOf(each)]) : []
  return new Set([...(Array.isArray(type) ? type : type === undefined ? [] : [type]), ...alternatives])
}
