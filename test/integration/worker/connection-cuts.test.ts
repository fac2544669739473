import assert from 'node:assert/strict';
import { findMissedTargets, measureCuts } from '../../../scripts/reliability/cuts.js';

describe('three workers whose connections are closed again and again', () => {
  it('neither hang nor lose jobs, run none twice, and stop in time', async () => {
    const result = await measureCuts(10_000);
    assert.deepEqual(findMissedTargets(result), []);
    assert.ok(result.cuts > 5);
  });
});
