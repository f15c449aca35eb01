import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { spokenWait, spokenWindow } from './durations.ts'

describe('spokenWait', () => {
  for (const [ms, text] of [
    [Number.NaN, 'in 1 s'],
    [-1, 'in 1 s'],
    [1, 'in 1 s'],
    [13_001, 'in 14 s'],
    [60_000, 'in 60 s'],
    [119_999, 'in 120 s'],
    [120_000, 'in 2 minutes'],
    [120_001, 'in 3 minutes'],
    [7_200_000, 'in 120 minutes'],
    [7_200_001, 'in about 3 hours'],
    [86_399_000, 'in about 24 hours'],
    [86_400_000, 'in about 24 hours'],
    [172_800_001, 'in about 3 days'],
    [Infinity, 'in about 31 days'],
  ] as const)
    it(`says ${text} for ${ms} ms, and never too early`, () => assert.equal(spokenWait(ms), text))
})

describe('spokenWindow', () => {
  for (const [ms, text] of [
    [500, '0.5 s'],
    [60_000, '60 s'],
    [90_000, '90 s'],
    [180_000, '3 minutes'],
    [3_600_000, '1 hour'],
    [86_400_000, '24 hours'],
    [604_800_000, '7 days'],
    [3_601_000, '3601 s'],
  ] as const)
    it(`says ${text} exactly`, () => assert.equal(spokenWindow(ms), text))
})
