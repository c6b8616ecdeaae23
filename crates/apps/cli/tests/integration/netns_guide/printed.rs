//! The guide's own blocks, in the order in which a reader meets them.

/// What docs/guide/fleet.md prints.
pub(crate) struct Guide {
    /// Makes the folder and the keys.
    pub(crate) keys: String,
    /// `collect.toml`.
    pub(crate) file: String,
    /// Starts the collector.
    pub(crate) start: String,
    /// Starts one site.
    pub(crate) site: String,
    /// Looks at a changed file, and lets it run.
    pub(crate) change: String,
    /// Stops everything, and lets it go on.
    pub(crate) suppression: [String; 2],
}

impl Guide {
    pub(crate) fn read() -> Self {
        let text = include_str!("../../../../../../docs/guide/fleet.md");
        let shell = |with: &str| {
            let mut found = blocks(text, "sh").filter(|block| block.contains(with));
            let block = found.next().unwrap_or_else(|| panic!("no block with '{with}'"));
            assert_eq!(found.next(), None, "one block with '{with}'");
            block.to_owned()
        };
        let file = blocks(text, "toml").max_by_key(|block| block.len()).unwrap().to_owned();
        let suppression = shell("suppression");
        let (stop, go_on) = suppression.split_once('\n').unwrap();
        Self {
            keys: shell("urandom"),
            file,
            start: shell("collect run"),
            site: shell("netaware probe"),
            change: shell("collect apply"),
            suppression: [stop.to_owned(), go_on.to_owned()],
        }
    }
}

/// Fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let fence = format!("```{language}\n");
    let after: Vec<&str> = text.split(&*fence).skip(1).collect();
    after.into_iter().filter_map(|rest| rest.split("```").next())
}
