package main

var moods = []string{"happy", "funny", "kind", "quiet", "brave", "sweet", "exciting", "gentle", "silly", "warm"}

var openings = []string{
	`Begin with "Once upon a time".`, `Begin with "Once upon a time, there was".`, `Begin with "One day".`, `Begin with "Once there was".`,
	`Begin with "In a small village".`, `Begin with "It was a sunny day".`, `Begin with "Long ago".`, `Begin with "Every morning".`,
	`Begin with the name of the hero.`, `Begin with "Once upon a time".`, `Begin with "One night".`, `Begin with "In the forest".`,
}

var heroes = []string{
	"a little girl", "a little boy", "a small dog", "a grey cat", "a young rabbit", "an old bear", "a clever fox", "a tiny mouse", "a kind king",
	"a lonely dragon", "two sisters", "two friends", "a brother and a sister", "a grandmother", "a farmer", "a baby elephant", "a duck", "a hungry lion",
	"a shy turtle", "a robot", "a bird with a blue feather", "a frog", "a sleepy owl", "a princess", "a fisherman", "a horse", "a little fish",
	"a busy bee", "a snail", "a teacher", "a baker", "a sheep", "a monkey", "a squirrel", "a wolf who is kind", "a penguin", "a young witch", "a sailor",
	"Lily", "Tom", "Ben", "Mia", "Anna", "Sam", "Max", "Lucy",
}

var things = []string{
	"a red ball", "a lost key", "a big tree", "a boat", "the moon", "a star", "a magic stone", "a kite", "a garden", "a birthday cake", "a river",
	"the rain", "the snow", "a toy car", "a secret door", "a blue hat", "a broken cup", "a long road", "a mountain", "an apple", "a flower", "a song",
	"a lantern", "a picnic", "a bridge", "a new friend", "a letter", "a warm coat", "a hole in the ground", "a treasure", "a picture book", "the sea",
	"a bell", "a swing", "a storm", "a puddle", "a nest", "a balloon", "a train", "a little house",
}

var turns = []string{
	"Something gets lost and is found.", "Somebody learns to share.", "Somebody is afraid at first.", "It ends with a hug.", "It ends with a surprise.",
	"There is a problem, and friends help.", "Somebody says sorry.", "It ends at bedtime.", "Somebody tells the truth.", "Somebody tries again and again.",
	"There is a small lesson at the end.", "It ends with a party.", "Somebody helps a stranger.", "It has some talking in it.", "It ends with everyone laughing.",
}
