import { createRedactor, redactor } from '@toolgate/values/redact'
import { measure, printFigures } from './lib.ts'

const PROSE =
  'The report was read from the workspace and has 12 pages. It names three people and two places: see the list at the end, where a line is name=value. '
    .repeat(2)
    .slice(0, 200)
const JSON_TEXT = JSON.stringify({
  path: '/workspace/src/index.ts',
  line: 12,
  id: '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f',
  sha: 'da39a3ee5e6b4b0d3255bfef95601890afd80709',
  ok: true,
  encoding: 'utf8',
  note: 'as agreed',
}).padEnd(200, ' ')
const SECRET_TEXT = `${PROSE.slice(0, 150)} password=hunter2-hunter2 and more`.padEnd(200, '.')
const INPUT = Object.freeze({ path: '/workspace/a.txt', head: 10, tail: null, text: 'hello world' })
const LONG = `${PROSE} `.repeat(500)
const withSecrets = createRedactor({
  secrets: Array.from({ length: 100 }, (_, i) => `secret-${i}-${'abcdefgh'.repeat(4)}`),
})

let sink = 0
const texts = (run: (text: string) => string, text: string) => (count: number) => {
  for (let i = 0; i < count; i++) sink += run(text).length
}

printFigures(
  'Redaction of a text of 200 characters',
  await measure([
    { name: 'a look at each character', run: texts(lookAtEach, PROSE) },
    { name: 'JSON.stringify of it', run: texts((text) => JSON.stringify(text), PROSE) },
    { name: 'prose', run: texts(redactor.redactText, PROSE), budget: '≤ 1 µs' },
    { name: 'JSON', run: texts(redactor.redactText, JSON_TEXT), budget: '≤ 1 µs' },
    { name: 'prose, 100 secrets known', run: texts(withSecrets.redactText, PROSE) },
    { name: 'with a secret', run: texts(redactor.redactText, SECRET_TEXT) },
  ]),
  'a look at each character',
)
printFigures(
  'Redaction of an input of four fields',
  await measure([
    { name: 'JSON.stringify', run: values((value) => JSON.stringify(value)) },
    { name: 'redactValue', run: values(redactor.redactValue), budget: '≤ 1 µs' },
    { name: 'redactValue, 100 secrets known', run: values(withSecrets.redactValue) },
  ]),
  'JSON.stringify',
)
printFigures(
  'Redaction of a text of 100,000 characters',
  await measure([
    { name: 'a look at each character', run: texts(lookAtEach, LONG) },
    { name: 'redactText', run: texts(redactor.redactText, LONG) },
    { name: 'redactText, 100 secrets known', run: texts(withSecrets.redactText, LONG) },
  ]),
  'a look at each character',
)
if (sink === -1) console.log(sink)

/** The least that any matcher does. */
function lookAtEach(text: string): string {
  let signs = 0
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === 61) signs++
  return signs > text.length ? '' : text
}

function values(run: (value: unknown) => unknown): (count: number) => void {
  return (count) => {
    for (let i = 0; i < count; i++) sink += run(INPUT) === undefined ? 1 : 0
  }
}
