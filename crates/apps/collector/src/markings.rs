//! Joins of marked blocks: counts of two points go in, loss and delay between them come out.
//!
//! A few rows a period of each point, so the desk works them off itself. What they hold is not kept
//! over an end of the process: blocks that were under way are `unobserved`.

use std::collections::BTreeMap;

use netaware_passive::join::PointId;
use netaware_passive::marking::{MarkingJoin, MarkingPair, MarkingRule};
use netaware_record::passive::{ProbeReport, Row, TaskRow};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::What;

use crate::config::{Config, JoinRule, interface_of, on_interface};
use crate::held;
use crate::joins::{JoinView, Views, exchange, for_exchanges, points_of, watched};

/// What makes one: when it changes, it begins anew.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setup {
    pub(crate) task: String,
    pub(crate) rule: MarkingRule,
}

/// Whether a task counts marked blocks.
pub(crate) fn is_marking(config: &Config, task: &str) -> bool {
    config.tasks.get(task).is_some_and(|task| matches!(task.what, What::Marking { .. }))
}

/// What a join of the file asks for, if it is one of marked blocks.
pub(crate) fn setup(config: &Config, join: &JoinRule) -> Option<Setup> {
    let What::Marking { block_ms, .. } = config.tasks.get(&join.task)?.what else { return None };
    let points: Vec<String> = config.members(&join.points).into_iter().map(str::to_owned).collect();
    let find = |name: &String| {
        let at = points.iter().position(|point| point == name)?;
        u8::try_from(at).ok().map(PointId)
    };
    let pair = |(from, to): &(String, String)| Some(MarkingPair { from: find(from)?, to: find(to)? });
    let rule = MarkingRule {
        pairs: join.pairs.iter().filter_map(pair).collect(),
        points,
        block: Span::from_millis(i64::from(block_ms)),
        period: config.period(),
        report_patience: join.report_patience.map_or(Span::from_secs(15), |time| time.0),
        clock_window: Span::from_secs(64),
    };
    Some(Setup { task: join.task.clone(), rule })
}

struct Marking {
    setup: Setup,
    join: MarkingJoin,
}

/// All of a collector, by name.
#[derive(Default)]
pub(crate) struct Markings(BTreeMap<String, Marking>);

impl Markings {
    /// Joins from now on. Reports of blocks come to the first collector alone, so it alone joins
    /// them.
    pub(crate) fn follow(&mut self, config: &Config, views: &Views) {
        let joins = config.joins.iter().filter(|_| config.shard().0 == 0);
        let wanted: BTreeMap<&String, Setup> =
            joins.filter_map(|(name, join)| Some((name, setup(config, join)?))).collect();
        let mut views = held(views);
        self.0.retain(|name, marking| {
            let stays = wanted.get(name) == Some(&marking.setup);
            if !stays {
                views.remove(name);
            }
            stays
        });
        for (name, setup) in wanted {
            if self.0.contains_key(name) {
                continue;
            }
            match MarkingJoin::new(setup.rule.clone()) {
                Ok(join) => {
                    let points = setup.rule.points.clone();
                    views
                        .insert(name.clone(), JoinView { name: name.clone(), points, ..JoinView::default() });
                    self.0.insert(name.clone(), Marking { setup, join });
                }
                Err(why) => tracing::error!(join = name, "cannot be made: {why}"),
            }
        }
    }

    /// A report that is on the disk, of a probe some of whose packets are `lacking`.
    pub(crate) fn offer(&mut self, probe: &str, report: &ProbeReport, lacking: u64) {
        for Marking { setup, join } in self.0.values_mut() {
            for_exchanges(&setup.rule.points, probe, &report.exchanges, |asked, answered, all| {
                for one in &all {
                    join.exchange(asked, answered, &exchange(one));
                }
            });
            for name in points_of(&setup.rule.points, probe) {
                let Some(point) = join.point(name) else { continue };
                let task = on_interface(&setup.task, interface_of(name));
                for row in report.rows.iter().filter(|row| row.task == task) {
                    if let Row::Marking(row) = &row.row {
                        join.offer(point, row);
                    }
                }
                for (period, lost) in watched(report, &setup.task, interface_of(name)) {
                    join.watched(point, period, lost.saturating_add(lacking), &report.clock);
                }
            }
        }
    }

    /// Rows that can be made by now.
    pub(crate) fn rows(&mut self, now: Wall, views: &Views) -> Vec<TaskRow> {
        let mut rows = Vec::new();
        for (name, marking) in &mut self.0 {
            let made = marking.join.advance(now);
            if let Some(view) = held(views).get_mut(name) {
                view.periods += made.len() as u64;
            }
            let row = |(period, row)| TaskRow::new(&**name, period, Row::Delay(Box::new(row)));
            rows.extend(made.into_iter().map(row));
        }
        rows
    }
}
