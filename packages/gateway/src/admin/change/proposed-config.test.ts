import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ConfigFileError } from '../../config/problems.ts'
import { checkTaken } from './proposed-config.ts'

describe('checkTaken', () => {
  let folder: string
  let file: string
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'toolgate-taken-'))
    file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, 'a: "${KEY} and ${file:/run/key}" # ${COMMENT}\n')
  })
  after(() => rmSync(folder, { recursive: true }))

  for (const text of ['a: b', 'b: ${KEY}', "c: ['${file:/run/key}']", 'd: $${OTHER}', 'e: f # ${OTHER}'])
    it(`takes ${text}`, () => checkTaken(text, { file }))

  const further = [
    'a: ${OTHER}',
    'a: ${KEY:-x}',
    '${OTHER}: a',
    // What YAML itself writes otherwise.
    String.raw`a: "\x24{OTHER}"`,
    String.raw`a: "\u0024\u007bfile:/etc/passwd}"`,
    String.raw`a: {b: ["$\x7bOTHER}"]}`,
    'a: "$\\\n  {OTHER}"',
    'a: >-\n  ${OTHER}\n',
    // Only a comment has it.
    'a: ${COMMENT}',
  ]
  for (const text of further)
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(() => checkTaken(text, { file }), ConfigFileError)
    })

  it('reads a text of many beginnings once', () => {
    // Minutes, if each beginning were looked for to the end.
    checkTaken(`a: "${'${'.repeat(250_000)}"`, { file })
  })

  // Each of these took the parser between 5 and 20 seconds.
  for (const sign of ['[', ']', '[],', '*a,', '"', '!a ', '- '])
    it(`refuses a million of ${JSON.stringify(sign)} before it is parsed`, () => {
      const text = `a: 1\nb: [${sign.repeat(1_000_000 / sign.length)}`
      assert.throws(() => checkTaken(text, { file }), /more than 200000 YAML tokens/)
    })
})
